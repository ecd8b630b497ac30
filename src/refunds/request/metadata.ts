import { z } from '@hono/zod-openapi'

const MAX_PAIRS = 20
/** Of the pairs as JSON in UTF-8. */
const MAX_BYTES = 2_048

/** What the caller stores with a refund: string pairs that mean nothing to this service. */
export const Metadata = z
  .record(
    z.string().min(1, 'must not have an empty name').refine(isStorable, 'holds control characters'),
    z
      .string()
      .refine((text) => isStorable(text.replace(/[\t\r\n]/g, '')), 'holds control characters'),
  )
  .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, `must have at most ${MAX_PAIRS} pairs`)
  .refine(
    (pairs) => Buffer.byteLength(JSON.stringify(pairs)) <= MAX_BYTES,
    `must be at most ${MAX_BYTES} bytes of JSON`,
  )

function isStorable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}
