// JIT over time.

/** Mounts it. */
export function mountJitTime(root, page) {
  root.dataset.samples = String(page.selection().count);
}
