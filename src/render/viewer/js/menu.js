// A context menu, usable with the pointer, arrow keys, and the letter of each item.

import { element } from "./dom.js";

/** Opens a menu. An item is {label, key, act}; `null` is a separator. `title` says what the menu is about. When the
 * menu closes, `back` gets the focus. */
export function openMenu(title, items, { x, y }, back) {
  const menu = element(
    "div",
    { id: "menu", role: "menu", "aria-label": title, tabindex: "-1" },
    element("div", { class: "menu-title" }, title),
  );
  const close = () => {
    removeEventListener("pointerdown", outside, true);
    removeEventListener("blur", close);
    menu.remove();
  };
  const outside = (event) => {
    if (menu.contains(event.target)) return;
    close();
    back.focus({ preventScroll: true });
  };
  const choose = (item) => {
    close();
    back.focus({ preventScroll: true });
    item.act();
  };
  menu.append(...items.map((item) => (item === null ? element("hr") : menuItem(item, () => choose(item)))));
  menu.addEventListener("keydown", (event) =>
    menuKey(
      event,
      menu,
      items.filter((item) => item !== null),
      choose,
      () => {
        close();
        back.focus({ preventScroll: true });
      },
    ),
  );
  menu.addEventListener("contextmenu", (event) => event.preventDefault());
  document.getElementById("menu")?.remove();
  document.body.append(menu);
  menu.style.left = `${Math.max(0, Math.min(x, innerWidth - menu.offsetWidth - 4))}px`;
  menu.style.top = `${Math.max(0, Math.min(y, innerHeight - menu.offsetHeight - 4))}px`;
  menu.querySelector("button")?.focus({ preventScroll: true });
  addEventListener("pointerdown", outside, true);
  addEventListener("blur", close);
}

/** The button of an action in the menu. `key` is the key that does the same, and `act` is called for a click. */
function menuItem({ id, label, key }, act) {
  return element(
    "button",
    { id: `menu-${id}`, role: "menuitem", tabindex: "-1", onclick: act },
    element("span", {}, label),
    key ? element("kbd", {}, key) : null,
  );
}

/** Handles a key press in the menu: moves between items, chooses one, or leaves the menu. */
function menuKey(event, menu, items, choose, leave) {
  const buttons = [...menu.querySelectorAll("button")];
  const current = buttons.indexOf(document.activeElement);
  const go = (to) => buttons[(to + buttons.length) % buttons.length].focus({ preventScroll: true });
  const chosen = items.find((item) => item.key === event.key && item.key.length === 1);
  if (event.key === "ArrowDown") go(current + 1);
  else if (event.key === "ArrowUp") go(current - 1);
  else if (event.key === "Home") go(0);
  else if (event.key === "End") go(-1);
  else if (event.key === "Enter" || event.key === " ") buttons[current]?.click();
  else if (event.key === "Escape" || event.key === "Tab") leave();
  else if (chosen && !event.ctrlKey && !event.metaKey) choose(chosen);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
