// The pictures that the flame graph makes of the page's model, made anew only when what they are made of has changed.

import { BoxCategories, ownByCategory } from "./box_categories.js";
import { GroupLooks, LanesPicture, TreePicture } from "./flame_picture.js";
import { Latest } from "./latest.js";
import { rowParts } from "./selection.js";
import { shownTime, timeClock } from "./time_axis.js";
import { timeLanes } from "./time_lanes.js";

/** Pictures, and what is reported beside them. */
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

  /** The group of the function that all parts show; −1: none. */
  selectedGroup() {
    const { selected } = this.page.state;
    return selected === null ? -1 : (this.page.groups().of[selected] ?? -1);
  }

  categoriesOf(tree, name) {
    const selection = this.page.selection();
    return this.remember(
      `categories ${name}`,
      [tree, selection],
      () => new BoxCategories(this.page.profile, tree, selection),
    );
  }

  /** The picture of everything; merged in any case if asked for so. */
  wholePicture(isMerged = false) {
    const { page } = this,
      { direction, order } = page.state;
    if (order === "time" && direction !== "bottomup" && !isMerged) return this.lanesPicture();
    const tree = page.tree(direction === "bottomup" ? "bottomup" : "calls"),
      looks = this.looks(),
      { unit } = page;
    // Bottom-up graphs stand as `jitgraft flamegraph --reverse` draws them: what ran is at the bottom.
    const upward = direction !== "icicle";
    return this.remember(
      "whole",
      [tree, looks, unit, upward],
      () =>
        new TreePicture({
          page,
          tree,
          looks,
          upward,
          endsFirst: direction === "bottomup",
          categories: direction === "bottomup" ? null : this.categoriesOf(tree, "calls"),
        }),
    );
  }

  lanesPicture() {
    const { page } = this,
      { profile, state } = page;
    const tree = page.tree("calls"),
      looks = this.looks(),
      { unit } = page;
    const length = timeClock(profile)?.length ?? 0,
      [from, to] = shownTime(state, length);
    return this.remember("lanes", [tree, looks, unit, from, to], () => {
      const rows = profile.rows(Math.min(state.event, profile.events.length - 1)),
        clock = rows.time ? profile.time.unit : 0;
      const nodeOf = (row) => (rows.node[row] >= 0 ? Math.max(tree.place[rows.node[row]], 0) : 0);
      const categories = this.categoriesOf(tree, "calls");
      return new LanesPicture({ page, tree, looks, categories }, this.lanes(rows, clock), nodeOf, clock, [from, to]);
    });
  }

  lanes(rows, unit) {
    const { profile, state } = this.page,
      partOf = rowParts(profile, rows, state);
    const weights = state.weight === "samples" ? rows.count : rows.weight;
    const weighsTime = this.page.event.unit === "nanoseconds" && state.weight !== "samples";
    return timeLanes(rows, profile.tracks, {
      takes: (row) => partOf(row) > 0,
      unit,
      weighsTime,
      rowsLast: profile.rowsLast,
      weight: (row) => weights[row],
    });
  }

  /** Callers above a function, and what it called below it. */
  sandwichPictures() {
    const { page } = this,
      { callers, callees } = page.sandwich(),
      looks = this.looks(),
      { unit } = page;
    return this.remember("sandwich", [callers, callees, looks, unit], () => ({
      callers: new TreePicture({
        page,
        tree: callers,
        looks,
        upward: true,
        root: Math.min(1, callers.length - 1),
        showsRoot: false,
        endsFirst: true,
      }),
      callees: new TreePicture({
        page,
        tree: callees,
        looks,
        root: Math.min(1, callees.length - 1),
        categories: callees.at === null ? null : this.categoriesOf(callees, "callees"),
      }),
    }));
  }

  /** By category, what ran itself in the stacks that are shown; what is hidden counts for its caller. */
  ownByCategory() {
    const { page } = this,
      tree = page.tree("calls"),
      selection = page.selection();
    return this.remember("own", [tree, selection], () => ownByCategory(page.profile, tree, selection));
  }
}
