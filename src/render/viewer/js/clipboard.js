// Copies text to the clipboard.

/** Copies a text. Pages opened from disk may not use the modern API, so the old one is the fallback. */
export async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard interface is missing, or its use was refused. Let the browser copy a selected text field instead.
    const area = document.createElement("textarea"), before = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    before?.focus();
  }
}
