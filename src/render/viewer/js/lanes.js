// The lanes of the timeline: threads under their processes, processes, or processors. A thread that was renamed or ran
// on several processors has several tracks, but only one lane, with its last name.
//
// On a page with several recordings, each has a lane of its own, and its other lanes are below that.
//
// A lane: { kind: "thread"|"process"|"cpu"|"recording", name, detail, tracks: [numbers], depth, weight, first, last,
// recording: number|null }.

/** The kinds of lanes that are useful for this profile. */
export function laneChoices(profile) {
  const distinct = (key) => new Set(profile.tracks.map((track) => track[key]).filter((value) => value !== null && value !== undefined));
  const choices = ["thread"];
  if (distinct("pid").size > 1) choices.push("process");
  if (distinct("cpu").size > 0) choices.push("cpu");
  if (profile.recordings.length > 1) choices.push("recording");
  return choices;
}

/** The lanes of an event's rows, in display order. `by` is one of `laneChoices`. Tracks without rows have no lane. */
export function lanesOf(profile, rows, by) {
  const sums = trackSums(profile, rows);
  const tracks = profile.tracks.map((track, number) => ({ ...track, number })).filter((track) => sums.rows[track.number] > 0);
  if (profile.recordings.length < 2) return lanesOfTracks(profile, tracks, sums, by);
  return profile.recordings.flatMap(({ name }, recording) => {
    // Several recordings: each has a lane of its own, with the lanes of its processes or threads below it.
    const ofRecording = tracks.filter((track) => track.input === recording);
    const whole = { ...laneSums(ofRecording, sums), kind: "recording", name, detail: "", recording };
    // The recording only has rows of other events.
    if (ofRecording.length === 0) return [{ ...whole, detail: "other events", first: 0, last: 0 }];
    const below = by === "recording" ? [] : lanesOfTracks(profile, ofRecording, sums, by);
    return [whole, ...below.map((lane) => ({ ...lane, depth: lane.depth + 1, recording }))];
  });
}

/** The lanes of these tracks: processors, processes, or (if `by` is "thread") threads below their processes. `seen` has
 * the sums of each track's rows. */
function lanesOfTracks(profile, tracks, seen, by) {
  if (by === "cpu" && laneChoices(profile).includes(by)) return laneGroups(tracks, seen, (track) => track.cpu, cpuLane).sort((a, b) => a.order - b.order);
  const processes = laneGroups(tracks, seen, (track) => track.pid ?? track.comm, processLane).sort((a, b) => b.weight - a.weight);
  if (by === "process") return processes;
  return processes.flatMap((process) => threadLanes(process, tracks, seen, processes.length > 1));
}

/** The number, weight and time range of each track's rows. */
function trackSums(profile, rows) {
  const count = profile.tracks.length, unit = profile.rowsHaveDurations && profile.time?.unit;
  const sums = {
    rows: new Uint32Array(count), weight: new Float64Array(count),
    first: new Float64Array(count).fill(Infinity), last: new Float64Array(count).fill(-Infinity),
  };
  for (let row = 0; row < rows.length; row++) {
    const track = rows.track[row], time = rows.time ? rows.time[row] : 0;
    sums.rows[track]++;
    sums.weight[track] += rows.weight[row];
    if (time < sums.first[track]) sums.first[track] = time;
    // A row with a duration ends later than it begins.
    const end = unit ? time + rows.weight[row] / unit : time;
    if (end > sums.last[track]) sums.last[track] = end;
  }
  return sums;
}

/** Makes a lane of all tracks with the same key. `laneOf(group)` returns the kind, name and detail of a lane. */
function laneGroups(tracks, seen, keyOf, laneOf) {
  const groups = new Map();
  for (const track of tracks) {
    const key = keyOf(track);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(track);
  }
  return Array.from(groups.values(), (group) => ({ ...laneSums(group, seen), ...laneOf(group, seen) }));
}

/** The fields that all lanes have: the numbers of their tracks, and the sums of the tracks' rows (`seen`). */
function laneSums(group, seen) {
  const numbers = group.map((track) => track.number);
  return {
    tracks: numbers,
    depth: 0,
    recording: null,
    weight: numbers.reduce((sum, number) => sum + seen.weight[number], 0),
    first: numbers.reduce((first, number) => Math.min(first, seen.first[number]), Infinity),
    last: numbers.reduce((last, number) => Math.max(last, seen.last[number]), -Infinity),
  };
}

function cpuLane(group) {
  const cpu = group[0].cpu;
  return cpu === null ? { kind: "cpu", name: "processor unknown", detail: "", order: Infinity } : { kind: "cpu", name: "CPU " + cpu, detail: "", order: cpu };
}

function processLane(group, seen) {
  const first = group.filter(isMainThread);
  const threads = new Set(group.map(threadKey)).size, pid = group[0].pid;
  const detail = (pid === null ? "" : String(pid)) + (threads > 1 ? ` (${threads})` : "");
  return { kind: "process", name: lastName(first.length ? first : group, seen), detail };
}

/**
 * The lanes of a process's threads: the main thread first, then the busiest. If there are several processes, the
 * threads are below a lane for the process.
 */
function threadLanes(process, tracks, seen, isOneOfSeveral) {
  const ofProcess = new Set(process.tracks);
  const laneOf = (group) => ({
    kind: "thread", name: lastName(group, seen), detail: group[0].tid === null ? "" : String(group[0].tid),
    isMain: isMainThread(group[0]),
  });
  const threads = laneGroups(tracks.filter((track) => ofProcess.has(track.number)), seen, threadKey, laneOf);
  threads.sort((a, b) => b.isMain - a.isMain || b.weight - a.weight);
  if (!isOneOfSeveral || threads.length === 1) return threads;
  return [process, ...threads.map((thread) => ({ ...thread, depth: 1 }))];
}

const threadKey = (track) => track.tid ?? "track " + track.number;
const isMainThread = (track) => track.tid === null || track.tid === track.pid;

/** The latest name of a thread. */
function lastName(group, seen) {
  const last = group.reduce((last, track) => seen.last[track.number] > seen.last[last.number] ? track : last);
  return last.comm || "(no name)";
}
