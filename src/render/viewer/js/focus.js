// Keeps the keyboard focus from getting lost. When the focused element is hidden, disabled or removed, the browser
// focuses nothing, and the next key has no effect. The focus then goes to the part's main element, which has the
// attribute `data-home`.

/** True if an element can't have the focus. */
export function isLost(element) {
  if (!element || element === document.body || !element.isConnected || element.disabled) return true;
  return !element.checkVisibility();
}

/** From now on, moves a lost focus to the main element of the part in which it was. */
export function keepFocus(root) {
  let [last, part, isAsked] = [null, null, false];
  addEventListener("focusin", ({ target }) => {
    [last, part] = [target, target.closest("[data-part]")];
  });
  const check = () => {
    isAsked = false;
    // If the previous element can still have the focus, the user has clicked elsewhere.
    if (last === null || !isLost(document.activeElement) || !isLost(last)) return;
    last = null;
    homeOf(part)?.focus({ preventScroll: true });
  };
  const watcher = new MutationObserver(() => {
    if (isAsked) return;
    isAsked = true;
    // Elements that were just disabled lose the focus in the next frame.
    requestAnimationFrame(() => requestAnimationFrame(check));
  });
  watcher.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden", "disabled"] });
}

/** The main element of a part or, if that can't have the focus, of the visible part; otherwise the tab of the visible
 * part. */
function homeOf(part) {
  const parts = [part, document.querySelector("[role=tabpanel]:not([hidden])")];
  const homes = parts.filter(Boolean).flatMap((part) => [part, ...part.querySelectorAll("[data-home]")]);
  const home = homes.find((element) => element.matches("[data-home]") && !isLost(element));
  return home ?? document.querySelector("[role=tab][aria-selected=true]");
}
