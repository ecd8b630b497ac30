import { isLosslessNumber, LosslessNumber, parse } from 'lossless-json'
import { z } from 'zod'
import { maskCardData, maskCardText } from '../mask.ts'
import { responseCode } from './messages.ts'

/** An envelope as the gateway gave it, every member kept, but masked; its numbers are `LosslessNumber`. */
export type Envelope = Record<string, unknown>

/** What a readable answer says (specification 2.1). */
export type CardAnswer =
  | {
      kind: 'answered'
      envelope: Envelope
      /** The merchant codes of the cards in it, in their order, as they came; none where one has none. */
      owners: readonly (string | undefined)[]
    }
  /** There is no such card, or another code than 1 says so. */
  | { kind: 'missing'; message: string }
  /** A list that was not given. */
  | { kind: 'refused'; status: number; message: string }
  /** No answer in the sense of the specification, whatever it looks like. */
  | { kind: 'failed'; reason: string; late: false }

const MAX_MESSAGE = 500

const number = z.custom<LosslessNumber>(
  (value) => value instanceof LosslessNumber,
  'is not a number',
)
/** Parsed numbers are objects, too: they must not pass for one. */
const owned = z.preprocess(
  (value) => (isLosslessNumber(value) ? undefined : value),
  z.looseObject({ merchantCode: z.string('is not a string').nullish() }, 'is not an object'),
)
const detail = owned.transform(({ merchantCode }) => [merchantCode ?? undefined])
const list = z
  .looseObject({ docs: z.array(owned, 'is not an array') }, 'is not an object')
  .transform(({ docs }) => docs.map(({ merchantCode }) => merchantCode ?? undefined))

/** Reads an answer to a card operation. A required member that is not as specified is no answer. */
export function readCardAnswer(body: Buffer, prefix: string, form: 'detail' | 'list'): CardAnswer {
  const given = parseBody(body)
  const envelope = z
    .looseObject(
      {
        code: responseCode,
        state: number.optional(),
        message: z.string('is not a string').nullish(),
        [`${prefix}ResponseId`]: z.string('is not a string').nullish(),
      },
      'the answer is not a JSON object',
    )
    .safeParse(given)
  if (!envelope.success) return fail(envelope.error, [])
  if (envelope.data.code !== '1') {
    const message = shorten(envelope.data.message)
    return form === 'detail'
      ? { kind: 'missing', message }
      : { kind: 'refused', status: 200, message }
  }
  const owners = (form === 'detail' ? detail : list).safeParse(envelope.data.data)
  if (!owners.success) return fail(owners.error, ['data'])
  return { kind: 'answered', envelope: mask(given), owners: owners.data }
}

/** What the gateway says for people when it refuses, masked; empty where it says nothing readable. */
export function readRefusal(body: Buffer): string {
  const given = z.object({ message: z.string() }).safeParse(parseBody(body))
  return given.success ? shorten(given.data.message) : ''
}

function fail(error: z.ZodError, under: readonly string[]): CardAnswer {
  const [issue] = error.issues
  const path = [...under, ...(issue?.path ?? [])].join('.')
  return { kind: 'failed', reason: `${path} ${issue?.message}`.trim(), late: false }
}

function parseBody(body: Buffer): unknown {
  try {
    return parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

function mask(given: unknown): Envelope {
  const masked = maskCardData(given)
  return typeof masked === 'object' && masked !== null ? { ...masked } : {}
}

/** Fit for a problem and a log line. */
function shorten(message: unknown): string {
  if (typeof message !== 'string') return ''
  const text = message.toWellFormed().replace(/\p{Cc}+/gu, ' ')
  return maskCardText(text).slice(0, MAX_MESSAGE)
}
