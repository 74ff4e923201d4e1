// Functions.

/** Mounts it. */
export function mountTable(root, page) {
  root.dataset.samples = String(page.selection().count);
}
