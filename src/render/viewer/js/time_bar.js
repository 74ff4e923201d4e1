// The bar above the lanes: what the rows are, the selected ranges as editable text, and the options that make `jitgraft
// report` count the same samples.

import { element } from "./dom.js";
import { counted, duration, grouped } from "./format.js";
import { laneChoices } from "./lanes.js";
import { clockOfRecording, onlyRecording, tracksOfRecording } from "./recordings.js";
import { rangesText, timeOption, tracksOption, typedRanges } from "./time_axis.js";

const LANE_WORDS = { thread: "threads", process: "processes", cpu: "processors", recording: "recordings" };

export class TimeBar {
  /** `clock` is null if the profile has no times. `actions` has the functions that the buttons call. */
  constructor(page, clock, actions) {
    this.page = page;
    this.clock = clock;
    const { store, profile } = page, choices = laneChoices(profile);
    this.rows = element("select", { id: "time-rows", onchange: () => store.set({ lanes: this.rows.value }) },
      ...choices.map((choice) => element("option", { value: choice }, LANE_WORDS[choice])));
    this.range = element("input", {
      id: "time-range", type: "text", spellcheck: "false", autocomplete: "off", placeholder: "all (drag, or type 1.2-1.5, 3-4)",
      title: "Seconds since the start, such as 1.2-1.5, 3-", "aria-label": "Ranges in seconds since the start",
      "aria-describedby": "time-told",
      oninput: () => this.setWrong(false), onchange: () => this.typed(), onkeydown: (event) => this.key(event),
      onblur: () => this.isWrong && this.show(),
    });
    this.isWrong = false;
    this.clear = element("button", { id: "time-clear", title: "Clear the range, so that all samples count (Escape)", onclick: actions.clear }, "All");
    this.zoom = element("button", { id: "time-zoom", title: "Show only the selected time (or zoom with Ctrl+wheel)", onclick: actions.zoom }, "Zoom in");
    this.whole = element("button", { id: "time-whole", title: "Show the whole recording", onclick: actions.whole }, "Zoom out");
    this.option = element("code", { id: "time-option", title: "Pass these options to jitgraft report to count only the samples selected here" });
    this.copy = element("button", { id: "time-copy", title: "Copy the options for jitgraft report", onclick: () => actions.copy(this.option.textContent) }, "Copy");
    this.fold = element("button", { id: "time-fold", "aria-controls": "part-time", onclick: actions.fold });
    this.told = element("output", { id: "time-told", "aria-live": "polite" });
    this.root = element("div", { class: "time-bar" },
      choices.length > 1 ? element("label", {}, "Rows ", this.rows) : null,
      ...(clock ? [element("label", {}, "Range ", this.range), this.clear, this.zoom, this.whole, this.told, this.option, this.copy] : [this.told]),
      this.fold);
  }

  /** Updates the button that switches between few lanes and all. The button is hidden if there are only few lanes. */
  showFold(isFolded, isLarge) {
    this.fold.hidden = !isLarge;
    this.fold.setAttribute("aria-expanded", String(!isFolded));
    this.fold.textContent = isFolded ? "▸ All rows" : "▾ Few rows";
    this.fold.title = isFolded ? "Show more rows, and the heat map" : "Make room for the flame graph";
  }

  typed() {
    const ranges = typedRanges(this.clock, this.range.value);
    this.setWrong(ranges === null);
    if (ranges) this.page.store.set({ ranges });
  }

  /** Marks the typed text as invalid, until it is changed or replaced. */
  setWrong(isWrong) {
    this.isWrong = isWrong;
    this.range.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) this.told.textContent = "not a range; type something like 1.2-1.5, 3-";
  }

  /** Handles a key in the text field: Enter selects the typed ranges, and Escape restores the previous text. */
  key(event) {
    if (event.key === "Enter") this.typed();
    if (event.key === "Escape") {
      this.setWrong(false);
      this.range.value = this.shownRanges;
      this.show();
    }
    if (event.key === "Enter" || event.key === "Escape") event.stopPropagation();
  }

  /** Shows the ranges, which may be a draft, and how much time they cover. */
  show(ranges = this.page.store.state.ranges, zoomed = false) {
    this.rows.value = this.page.store.state.lanes;
    if (!this.clock) return;
    const text = rangesText(this.clock, ranges);
    // Don't overwrite the text in the field while the user is typing, unless another range has been selected.
    const isTyping = document.activeElement === this.range && text === this.shownRanges;
    this.shownRanges = text;
    if (!isTyping) {
      this.range.value = text;
      this.setWrong(false);
    }
    const { profile, store } = this.page, { tracks } = store.state;
    const option = reportOption(profile, this.clock, ranges, tracks);
    if (this.option.textContent !== option) this.option.textContent = option;
    this.clear.disabled = this.zoom.disabled = !ranges.length;
    this.copy.disabled = !option;
    this.whole.disabled = !zoomed;
    // If the typed text is invalid, the message about that stays.
    const message = this.isWrong ? this.told.textContent : coveredTime(profile, this.clock, ranges, tracks);
    if (this.told.textContent !== message) this.told.textContent = message;
  }
}

/** The options that make `jitgraft report` count the samples selected on the page, or the empty text if no options do.
 * If there are several recordings and only one is selected, its file comes first. */
function reportOption(profile, clock, ranges, tracks) {
  const words = (...options) => options.filter(Boolean).join(" ");
  const recording = onlyRecording(profile, tracks);
  if (recording === null) {
    // No option can select a range in each of several recordings.
    const time = profile.recordings.length > 1 ? null : timeOption(clock, ranges);
    return time === null && ranges.length ? "" : words(time, tracksOption(profile.tracks, tracks));
  }
  // Only tracks of one recording are selected. `chosen` has their positions among all tracks of this recording.
  const ofRecording = tracksOfRecording(profile, recording), chosen = tracks.map((track) => ofRecording.indexOf(track));
  const time = timeOption(clockOfRecording(profile, clock, recording), ranges);
  const threads = chosen.length < ofRecording.length && tracksOption(ofRecording.map((track) => profile.tracks[track]), chosen);
  return words(shellWord(profile.recordings[recording].path), time, threads);
}

/** Quotes a word for a shell, if necessary. */
function shellWord(text) {
  return /^[\w./+:@%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** How much time the ranges cover: `1.25 s of 2.61 s`. If the page has several recordings and only one is selected, its
 * name follows. */
function coveredTime(profile, clock, ranges, tracks) {
  const length = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  const parts = ranges.length > 1 ? ` in ${grouped(ranges.length)} ranges` : "";
  const chosen = ranges.length ? duration(length * clock.unitNs) + parts + " of " : "";
  const recording = onlyRecording(profile, tracks);
  if (recording !== null) {
    const whole = clockOfRecording(profile, clock, recording);
    return `${chosen}${duration(whole.length * clock.unitNs)}, ${profile.recordings[recording].name}`;
  }
  if (profile.recordings.length > 1) return chosen ? `${chosen}each recording` : counted(profile.recordings.length, "recording");
  return chosen + duration(clock.length * clock.unitNs);
}
