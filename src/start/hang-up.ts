import { isatty } from 'node:tty'

const STANDARD_STREAMS = [0, 1, 2]

const countTerminals = () => STANDARD_STREAMS.filter((descriptor) => isatty(descriptor)).length

/**
 * Returns the handler of SIGHUP: a signal that was sent to the process reloads, and one that comes because its terminal
 * was closed stops, as it would without a handler.
 * @param count returns how many of the standard streams are terminals; a terminal that was closed is none any more
 */
export function createHangUpHandler(
  reload: () => void,
  stop: () => void,
  count = countTerminals,
): () => void {
  const atStart = count()
  return () => (count() < atStart ? stop() : reload())
}
