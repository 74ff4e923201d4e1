// The flame graph.

/** Mounts it. */
export function mountFlame(root, page) {
  root.dataset.samples = String(page.selection().count);
}
