// Machine code.

/** Mounts it. */
export function mountCode(root, page) {
  root.dataset.samples = String(page.selection().count);
}
