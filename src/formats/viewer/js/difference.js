// What grew and shrank.

/** Mounts it. */
export function mountDifference(root, page) {
  root.dataset.samples = String(page.selection().count);
}
