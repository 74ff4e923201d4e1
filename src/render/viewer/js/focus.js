// The keyboard's place: when the element that has the focus is hidden, disabled or removed, the browser gives the focus to
// nobody, and the next key goes nowhere. It goes to the main element of the part instead: one with `data-home`.

/** True if an element cannot have the focus. */
export function isLost(element) {
  if (!element || element === document.body || !element.isConnected || element.disabled) return true;
  return !element.checkVisibility();
}

/** Gives a lost focus to the part where it was, from now on. */
export function keepFocus(root) {
  let [last, part, isAsked] = [null, null, false];
  addEventListener("focusin", ({ target }) => {
    [last, part] = [target, target.closest("[data-part]")];
  });
  const check = () => {
    isAsked = false;
    // What can still have the focus was left by a click on something else.
    if (last === null || !isLost(document.activeElement) || !isLost(last)) return;
    last = null;
    homeOf(part)?.focus({ preventScroll: true });
  };
  const watcher = new MutationObserver(() => {
    if (isAsked) return;
    isAsked = true;
    // Elements that were just disabled lose the focus with the next picture.
    requestAnimationFrame(() => requestAnimationFrame(check));
  });
  watcher.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden", "disabled"] });
}

/** The main element of a part, or of the part that is shown. */
function homeOf(part) {
  const parts = [part, document.querySelector("[role=tabpanel]:not([hidden])")];
  const homes = parts.filter(Boolean).flatMap((part) => [part, ...part.querySelectorAll("[data-home]")]);
  const home = homes.find((element) => element.matches("[data-home]") && !isLost(element));
  return home ?? document.querySelector("[role=tab][aria-selected=true]");
}
