// The list of lane names beside the drawings, in which users select tracks by pointer or keyboard. Only visible names
// have elements in the page.

import { element } from "./dom.js";
import { LANE_HEIGHT, countingTracks, laneChosen, tracksAfterClick } from "./lane_rows.js";

export class LaneList {
  /** `scroller` is the element that scrolls. `pass(event)` is called with keys that the list of lanes doesn't use. */
  constructor(scroller, page, pass) {
    this.page = page;
    this.scroller = scroller;
    this.pass = pass;
    this.lanes = [];
    /** The lane at the keyboard cursor. */
    this.active = 0;
    /** The lane that was clicked last without Shift; null if none was. With Shift, it is one end of the selection. */
    this.clicked = null;
    this.spacer = element("div", { class: "lane-names", role: "presentation" });
    scroller.append(this.spacer);
    scroller.addEventListener("keydown", (event) => this.key(event));
    this.spacer.addEventListener("click", (event) => {
      const name = event.target.closest("[data-lane]");
      if (name) this.choose(Number(name.dataset.lane), event);
    });
  }

  /** The range [from, to) of visible lanes. */
  inView() {
    const { scrollTop, clientHeight } = this.scroller;
    return [
      Math.max(0, Math.floor(scrollTop / LANE_HEIGHT)),
      Math.min(this.lanes.length, Math.ceil((scrollTop + clientHeight) / LANE_HEIGHT)),
    ];
  }

  /** Shows the names of the visible lanes, unless nothing about them has changed. */
  show(lanes) {
    if (this.lanes !== lanes) [this.lanes, this.active, this.clicked, this.shown] = [lanes, 0, null, ""];
    const { tracks } = this.page.store.state, [from, to] = this.inView(), shown = [from, to, this.active, ...tracks].join();
    if (this.shown === shown) return;
    this.shown = shown;
    this.spacer.style.height = `${lanes.length * LANE_HEIGHT}px`;
    const counts = countingTracks(this.page.profile.tracks.length, tracks);
    const names = [];
    for (let lane = from; lane < to; lane++) names.push(this.nameOf(lane, counts));
    this.spacer.replaceChildren(...names);
    this.scroller.setAttribute("aria-activedescendant", `lane-${this.active}`);
  }

  /** The element with the name of a lane. `counts` tells which tracks are selected. */
  nameOf(number, counts) {
    const lane = this.lanes[number], chosen = laneChosen(lane, counts), { tracks } = this.page.store.state;
    const name = element("div", {
      id: `lane-${number}`, class: `lane ${chosen}${number === this.active ? " active" : ""}`, role: "option",
      "data-lane": String(number), "data-depth": String(lane.depth), "data-kind": lane.kind,
      "aria-selected": String(tracks.length > 0 && chosen === "all"),
      "aria-setsize": String(this.lanes.length), "aria-posinset": String(number + 1),
      title: `${lane.name} ${lane.detail}\nClick: select only this; Ctrl: add this; Shift: add all in between`,
    }, element("span", { class: "lane-name" }, lane.name), element("span", { class: "lane-detail" }, lane.detail));
    name.style.top = `${number * LANE_HEIGHT}px`;
    return name;
  }

  /** Selects the tracks of a lane that was clicked or chosen by keyboard, as the keys held down with it (`keys`)
   * require. */
  choose(number, keys) {
    const { store, profile } = this.page;
    const tracks = tracksAfterClick(this.lanes, number, this.clicked, store.state.tracks, profile.tracks.length, keys);
    // With Shift, the lane that was clicked before stays the other end of the selection.
    [this.active, this.clicked] = [number, keys.shiftKey ? this.clicked ?? number : number];
    store.set({ tracks });
    this.show(this.lanes);
  }

  /** Handles a key: arrows move along the lanes, Enter selects one, and Ctrl+A selects all. `pass` gets other keys. */
  key(event) {
    const last = this.lanes.length - 1, page = Math.max(1, Math.floor(this.scroller.clientHeight / LANE_HEIGHT) - 1);
    const to = {
      ArrowUp: this.active - 1, ArrowDown: this.active + 1, PageUp: this.active - page, PageDown: this.active + page,
      Home: 0, End: last,
    }[event.key];
    if (to !== undefined && !event.altKey) this.move(Math.max(0, Math.min(last, to)));
    else if (event.key === " " || event.key === "Enter") this.choose(this.active, event);
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) this.page.store.set({ tracks: [] });
    else if (!this.pass(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  move(to) {
    this.active = to;
    const top = to * LANE_HEIGHT, { scroller } = this;
    scroller.scrollTop = Math.max(top + LANE_HEIGHT - scroller.clientHeight, Math.min(scroller.scrollTop, top));
    this.show(this.lanes);
  }
}
