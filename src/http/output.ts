let isGathering = false

/**
 * Lets the log lines of one turn of the event loop leave in one write: each write to a pipe or a file holds up the whole
 * process. To be called before a line is logged.
 */
export function gatherOutput(): void {
  if (isGathering) return
  isGathering = true
  process.stdout.cork()
  process.once('exit', release)
  setImmediate(release)
}

function release(): void {
  if (!isGathering) return
  isGathering = false
  process.off('exit', release)
  process.stdout.uncork()
}
