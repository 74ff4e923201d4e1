// What doctor found.

/** Mounts it. */
export function mountDoctor(root, page) {
  root.dataset.samples = String(page.selection().count);
}
