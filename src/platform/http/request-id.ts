import { randomUUID } from 'node:crypto'

const GIVEN = /^[\w\-=]{1,255}$/

/** Returns the id of a request: the client's `X-Request-Id`, unless it is missing or unfit for a log line. */
export function chooseRequestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && GIVEN.test(given) ? given : randomUUID()
}
