// What the menu and keys of a flame graph's box can do with its function. Most actions only change the state.

import { toClipboard } from "./clipboard.js";
import { stackText } from "./copy_text.js";
import { counted } from "./format.js";

/**
 * The actions of a box: [{id, label, key, act}]. `null` separates groups of actions. `view` is the graph with the box.
 * The root of the graph can only be zoomed; other boxes without a function (node 0 or less) have no actions.
 */
export function boxActions(page, view, box) {
  const { picture } = view,
    node = view.boxes.node[box];
  if (node <= 0) return [zoomAction(view, box)].filter((action) => node === picture.root && action);
  const number = picture.functionOf(node),
    name = page.profile.functions.name[number],
    { store } = page;
  return [
    zoomAction(view, box),
    {
      id: "sandwich",
      label: "Sandwich: callers and callees",
      key: "s",
      act: () => store.set({ sandwich: number, zoom: [], part: "flame" }),
    },
    {
      id: "focus",
      label: "Focus: only stacks through this function",
      key: "f",
      act: () => store.set({ focus: number, zoom: [] }),
    },
    null,
    ...hideActions(page, picture, node),
    null,
    {
      id: "search",
      label: "Search for this name",
      key: "/",
      act: () => store.set({ search: name, regex: false }),
    },
    ...otherParts(page, number),
    null,
    { id: "copy-name", label: "Copy name", key: "c", act: () => copy(view, name) },
    { id: "copy-stack", label: "Copy stack", key: "C", act: () => copy(view, stackText(picture, node)) },
  ];
}

function zoomAction(view, box) {
  return { id: "zoom", label: "Zoom", key: "Enter", act: () => view.enter(box) };
}

/** Actions that hide frames. Hidden frames are cut out of all stacks, and their weight goes to the caller. */
function hideActions({ profile, store }, picture, node) {
  const number = picture.functionOf(node),
    module = profile.functions.module[number],
    category = picture.categoryOf(node);
  const add = (key, value) => () => store.set({ [key]: [...store.state[key], value], zoom: [] });
  return [
    {
      id: "hide-function",
      label: "Hide function (its time goes to its callers)",
      key: "h",
      act: add("hiddenFunctions", number),
    },
    module
      ? { id: "hide-module", label: `Hide module ${lastPart(module)}`, key: "m", act: add("hiddenModules", module) }
      : false,
    {
      id: "hide-category",
      label: `Hide ${profile.categories[category].name} code`,
      key: "t",
      act: add("hiddenCategories", category),
    },
  ].filter((action) => action !== false);
}

/** Actions that lead to other parts of the page, which show more about the function. */
function otherParts({ store }, number) {
  const parts = [
    ["functions", "Show in the function table", "l"],
    ["code", "Show machine code", "o"],
  ];
  return parts
    .filter(([part]) => document.getElementById(`tab-${part}`))
    .map(([part, label, key]) => ({
      id: `show-${part}`,
      label,
      key,
      act: () => store.set({ selected: number, part }),
    }));
}

/** The last component of a path. */
export function lastPart(path) {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** Copies the text and shows a message. */
export function copy(view, text) {
  toClipboard(text).then(() =>
    view.say(`Copied ${counted(text.split("\n").filter((line) => line !== "").length, "line")}`),
  );
}
