// Pages with several recordings: which tracks belong to which recording. Each recording starts at time zero and has its
// own lanes. A range that is dragged over one of them counts for that recording alone.

/** The tracks of a recording. */
export function tracksOfRecording({ tracks }, recording) {
  return tracks.map((_, number) => number).filter((number) => tracks[number].input === recording);
}

/** The recording that all these tracks belong to; null if there are several, or if the page has only one recording. */
export function onlyRecording({ tracks, recordings }, chosen) {
  if (recordings.length < 2 || chosen.length === 0) return null;
  const [first, ...others] = new Set(chosen.map((track) => tracks[track]?.input ?? null));
  return others.length === 0 ? first : null;
}

/**
 * The selected tracks after a drag over a recording's lanes: those of its tracks that were selected before, or else all
 * of its tracks.
 */
export function tracksWithin(profile, recording, chosen) {
  const kept = chosen.filter((track) => profile.tracks[track]?.input === recording);
  return kept.length > 0 ? kept : tracksOfRecording(profile, recording);
}

/** The selected tracks after the last range is gone. A whole recording was only selected because of the range. */
export function tracksWithoutRange(profile, chosen) {
  const recording = onlyRecording(profile, chosen);
  return recording !== null && chosen.length === tracksOfRecording(profile, recording).length ? [] : chosen;
}

/** The clock of one recording: when it started, and how many units of time it lasts. */
export function clockOfRecording({ recordings }, clock, recording) {
  const { start, last } = recordings[recording];
  return { ...clock, startNs: start, length: Number((last - start) / BigInt(clock.unitNs)) + (clock.lasts ? 0 : 1) };
}
