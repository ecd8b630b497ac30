/** Message types of the protocol (Postgres 17, 53.7). Query and Sync are answered by ReadyForQuery, Flush by anything. */
const QUERY = 'Q'.charCodeAt(0)
const SYNC = 'S'.charCodeAt(0)
const FLUSH = 'H'.charCodeAt(0)

/** Notices that a server owes an answer and sends nothing. */
export type ResponseWatch = {
  /** Whole messages are being sent. */
  onSent(messages: Buffer): void
  /** Bytes have come, with this many ReadyForQuery messages among them. */
  onReceived(ready: number): void
  /** Whether the server owes an answer. */
  isOwed(): boolean
  stop(): void
}

/**
 * Creates a watch for a session. A server that vanished (its machine, or the network) closes nothing. The system gives
 * up on what it has sent there after a quarter of an hour, and until then every connection of a pool could wait.
 * @param limitMs must exceed the time-out of statements, which are answered or cancelled by then; it also ends the wait
 *   of a commit for a standby, which has no time-out
 * @param onSilent called once nothing has come for this long while an answer is owed
 */
export function watchResponses(limitMs: number, onSilent: () => void): ResponseWatch {
  let owed = 0
  let isFlushed = false
  let timer: NodeJS.Timeout | undefined
  function stop(): void {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    onSent(messages) {
      for (let at = 0; at + 5 <= messages.length; at += 1 + messages.readUInt32BE(at + 1)) {
        const type = messages[at]
        if (type === QUERY || type === SYNC) owed += 1
        else if (type === FLUSH) isFlushed = true
      }
      if (owed > 0 || isFlushed) timer ??= setTimeout(onSilent, limitMs)
    },
    onReceived(ready) {
      owed = Math.max(0, owed - ready)
      isFlushed = false
      if (owed === 0) stop()
      else timer?.refresh()
    },
    isOwed: () => owed > 0 || isFlushed,
    stop,
  }
}
