// Threads over time.

/** Mounts it. */
export function mountTimeline(root, page) {
  root.dataset.samples = String(page.selection().count);
}
