// Makes the flame graph's pictures from the page's data. Pictures are cached until the data that they depend on
// changes.

import { categoriesOf, ownByCategory } from "./box_categories.js";
import { Latest } from "./latest.js";
import { rowParts } from "./selection.js";
import { shownTime, timeClock } from "./time_axis.js";
import { timeLanes } from "./time_lanes.js";
import { GroupLooks, LanesPicture, TreePicture } from "./tree_picture.js";

/** The current pictures, and the sums that are shown next to them. */
export class FlameModel {
  #latest = new Map();

  constructor(page) {
    this.page = page;
  }

  remember(name, of, make) {
    if (!this.#latest.has(name)) this.#latest.set(name, new Latest());
    return this.#latest.get(name).get(of, make);
  }

  looks() {
    const groups = this.page.groups();
    return this.remember("looks", [groups], () => new GroupLooks(this.page.profile, groups));
  }

  /** The group of the selected function; −1 if none is selected. */
  selectedGroup() {
    const { selected } = this.page.state;
    return selected === null ? -1 : (this.page.groups().of[selected] ?? -1);
  }

  /** The picture of all stacks. If `isMerged`, equal stacks are merged even if the user chose time order. */
  wholePicture(isMerged = false) {
    const { direction, order } = this.page.state, endsFirst = direction === "bottomup";
    if (order === "time" && !endsFirst && !isMerged) return this.lanesPicture();
    // As in `jitgraft flamegraph --reverse`, the innermost functions of a bottom-up graph are at the bottom.
    const upward = direction !== "icicle";
    return this.treePicture("whole", this.page.tree(endsFirst ? "bottomup" : "calls"), { upward, endsFirst });
  }

  treePicture(name, tree, options) {
    const { page } = this, looks = this.looks();
    const make = () => new TreePicture({ page, tree, looks, categories: categoriesOf(page, tree), ...options });
    return this.remember(name, [tree, looks, page.unit, options.upward], make);
  }

  /** The stacks of a picture that end in the node `top` or below it, with a node for each unnamed frame. */
  pictureOfSingleFrames(picture, top) {
    const { page } = this, tree = page.treeOfSingleFrames(picture.tree, top);
    return new TreePicture({ page, tree, looks: this.looks(), categories: categoriesOf(page, tree) });
  }

  /** The picture of stacks in order of time, with a lane per thread. It starts with the timeline's visible range. */
  lanesPicture() {
    const { page } = this, { profile, state } = page, tree = page.tree("calls"), looks = this.looks();
    const [from, to] = shownTime(state, timeClock(profile)?.length ?? 0);
    return this.remember("lanes", [tree, looks, page.unit, from, to], () => {
      const rows = profile.rows(Math.min(state.event, profile.events.length - 1));
      const clock = rows.time ? profile.time.unit : 0;
      const nodeOf = (row) => (rows.node[row] >= 0 ? Math.max(tree.place[rows.node[row]], 0) : 0);
      const parts = { page, tree, looks, categories: categoriesOf(page, tree) };
      return new LanesPicture(parts, this.lanes(rows, clock), nodeOf, clock, [from, to]);
    });
  }

  /** The lanes for the selected rows of an event. `unit` is the number of nanoseconds per unit of time. */
  lanes(rows, unit) {
    const { profile, state } = this.page,
      partOf = rowParts(profile, rows, state);
    const weights = state.weight === "samples" ? rows.count : rows.weight;
    const weighsTime = this.page.event.unit === "nanoseconds" && state.weight !== "samples";
    return timeLanes(rows, profile.tracks, {
      takes: (row) => partOf(row) > 0,
      unit,
      weighsTime,
      rowsHaveDurations: profile.rowsHaveDurations,
      weight: (row) => weights[row],
    });
  }

  /** The pictures of a sandwich view: the callers of a function, and its callees. */
  sandwichPictures() {
    const { callers, callees } = this.page.sandwich(), rootOf = (tree) => Math.min(1, tree.length - 1);
    return {
      callers: this.treePicture("callers", callers, { upward: true, root: rootOf(callers), showsRoot: false, endsFirst: true }),
      callees: this.treePicture("callees", callees, { upward: false, root: rootOf(callees) }),
    };
  }

  /** The self weight of the visible stacks by category. Self weight of hidden functions counts for their callers. */
  ownByCategory() {
    const { page } = this,
      tree = page.tree("calls"),
      selection = page.selection();
    return this.remember("own", [tree, selection], () => ownByCategory(page.profile, tree, selection));
  }
}
