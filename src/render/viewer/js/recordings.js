// Several recordings in one page: which tracks are whose. Each recording starts at zero of the page's time and has lanes
// of its own; a range that is dragged over one of these counts in that recording alone.

/** The numbers of a recording's tracks. */
export function tracksOfRecording({ tracks }, recording) {
  return tracks.map((_, number) => number).filter((number) => tracks[number].input === recording);
}

/** The recording that all of these tracks are of; null if several are, and in a page of one recording. */
export function onlyRecording({ tracks, recordings }, chosen) {
  if (recordings.length < 2 || chosen.length === 0) return null;
  const [first, ...others] = new Set(chosen.map((track) => tracks[track]?.input ?? null));
  return others.length === 0 ? first : null;
}

/** The tracks that count after a drag over a recording's lanes: those of them that were chosen, or else all of them. */
export function tracksWithin(profile, recording, chosen) {
  const kept = chosen.filter((track) => profile.tracks[track]?.input === recording);
  return kept.length > 0 ? kept : tracksOfRecording(profile, recording);
}

/** The tracks that count when no range is left: a whole recording was chosen by its range. */
export function tracksWithoutRange(profile, chosen) {
  const recording = onlyRecording(profile, chosen);
  return recording !== null && chosen.length === tracksOfRecording(profile, recording).length ? [] : chosen;
}

/** A recording's own clock: when it started, and how many units of the page's time it lasts. */
export function clockOfRecording({ recordings }, clock, recording) {
  const { start, last } = recordings[recording];
  return { ...clock, startNs: start, length: Number((last - start) / BigInt(clock.unitNs)) + (clock.lasts ? 0 : 1) };
}
