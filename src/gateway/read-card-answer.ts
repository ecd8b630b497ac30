import { isLosslessNumber, LosslessNumber, parse } from 'lossless-json'
import { z } from 'zod'
import { maskCardData, maskCardText } from '../platform/crypto/mask-cards.ts'
import { toPrintable } from './printable.ts'
import { responseCode } from './read-answer.ts'

/** A card envelope with every member of the gateway's, card data masked; numbers are `LosslessNumber`. */
export type CardEnvelope = Record<string, unknown>

/** What the body of a card response means (specification 2.1). */
export type CardAnswer =
  | {
      kind: 'answered'
      envelope: CardEnvelope
      /** The merchant codes of its cards, in the same order; undefined where a card has none. */
      owners: readonly (string | undefined)[]
    }
  /** The card does not exist: HTTP 404, or a code other than 1. */
  | { kind: 'missing'; message: string }
  /** The gateway refused the list. */
  | { kind: 'refused'; status: number; message: string }
  /** Not an answer as the specification defines it. */
  | { kind: 'failed'; reason: string; timedOut: false }

const MAX_MESSAGE = 500

const number = z.custom<LosslessNumber>(
  (value) => value instanceof LosslessNumber,
  'is not a number',
)
/** A `LosslessNumber` is an object in JavaScript, but not in JSON. */
const ownedObject = z.preprocess(
  (value) => (isLosslessNumber(value) ? undefined : value),
  z.looseObject({ merchantCode: z.string('is not a string').nullish() }, 'is not an object'),
)
const detail = ownedObject.transform(({ merchantCode }) => [merchantCode ?? undefined])
const list = z
  .looseObject({ docs: z.array(ownedObject, 'is not an array') }, 'is not an object')
  .transform(({ docs }) => docs.map(({ merchantCode }) => merchantCode ?? undefined))

/** Reads the answer to a card operation. It has failed if a required member is not as specified. */
export function readCardAnswer(body: Buffer, prefix: string, form: 'detail' | 'list'): CardAnswer {
  const value = parseBody(body)
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
    .safeParse(value)
  if (!envelope.success) return toFailure(envelope.error, [])
  if (envelope.data.code !== '1') {
    const message = cleanMessage(envelope.data.message)
    return form === 'detail'
      ? { kind: 'missing', message }
      : { kind: 'refused', status: 200, message }
  }
  const owners = (form === 'detail' ? detail : list).safeParse(envelope.data.data)
  if (!owners.success) return toFailure(owners.error, ['data'])
  return { kind: 'answered', envelope: maskEnvelope(value), owners: owners.data }
}

/** Returns the message of a refusal, masked; empty if the body holds none. */
export function readRefusalMessage(body: Buffer): string {
  const parsed = z.object({ message: z.string() }).safeParse(parseBody(body))
  return parsed.success ? cleanMessage(parsed.data.message) : ''
}

function toFailure(error: z.ZodError, parentPath: readonly string[]): CardAnswer {
  const [issue] = error.issues
  const path = [...parentPath, ...(issue?.path ?? [])].join('.')
  return { kind: 'failed', reason: `${path} ${issue?.message}`.trim(), timedOut: false }
}

function parseBody(body: Buffer): unknown {
  try {
    return parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

function maskEnvelope(value: unknown): CardEnvelope {
  const masked = maskCardData(value)
  return typeof masked === 'object' && masked !== null ? { ...masked } : {}
}

function cleanMessage(message: unknown): string {
  return maskCardText(toPrintable(message)).slice(0, MAX_MESSAGE)
}
