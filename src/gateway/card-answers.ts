import { isLosslessNumber, LosslessNumber } from 'lossless-json'
import { z } from 'zod'
import { maskCardData, type UnmaskedMembers } from '../platform/crypto/masking.ts'
import { parseAnswer, responseCode } from './answers.ts'
import { toMessage } from './storable.ts'

/** The members of a card envelope (specification 2.1) beside `data`, for the OpenAPI document. */
export const CARD_ENVELOPE = {
  code: z.number().openapi({
    description: '`GATEWAY_CARDS_SUCCESS_CODE`: any other code is a problem here',
    example: 1,
  }),
  state: z.number().nullish().openapi({ description: 'The state of the response', example: 2 }),
  message: z
    .string()
    .nullish()
    .openapi({ description: "The gateway's message", example: 'Successful' }),
  /** Some gateways write it as a number. */
  svcResponseId: z.union([z.string(), z.number()]).nullish().openapi({
    description: 'The identifier of the response; `svc` stands for `GATEWAY_FIELD_PREFIX`',
  }),
}

/** A card envelope with every member of the gateway's, card data masked; numbers are `LosslessNumber`. */
export type CardEnvelope = Record<string, unknown>

/** How this gateway's card envelopes are read. The specification does not define the values of `code`. */
export type CardEnvelopeRules = {
  /** The wire prefix without its underscore, e.g. `svc`. */
  prefix: string
  /** The `code` of a success. */
  successCode: string
  /** The values of `code` that mean that there is no such card. */
  notFoundCodes: readonly string[]
}

/** What the body of a card response means (specification 2.1). */
export type CardAnswer =
  | {
      kind: 'answered'
      envelope: CardEnvelope
      /** The merchant codes of its cards, in the same order; undefined where a card has none. */
      owners: readonly (string | undefined)[]
    }
  /** The card does not exist: HTTP 404, or a code that means it. */
  | { kind: 'missing'; message: string }
  /** The gateway refused the read: its HTTP status, and the code if it named one. */
  | { kind: 'refused'; status: number; code?: string; message: string }
  /** Not an answer as the specification defines it. */
  | { kind: 'failed'; reason: string; timedOut: false }

const number = z.custom<LosslessNumber>(
  (value) => value instanceof LosslessNumber,
  'is not a number',
)
const envelope = z.looseObject(
  { code: responseCode, state: number.nullish(), message: z.string('is not a string').nullish() },
  'the answer is not a JSON object',
)
/** Some gateways write identifiers as numbers. */
const identifier = z.union([z.string(), number.transform(({ value }) => value)], 'is not a string')
/** A `LosslessNumber` is an object in JavaScript, but not in JSON. */
const ownedObject = z.preprocess(
  (value) => (isLosslessNumber(value) ? undefined : value),
  z.looseObject({ merchantCode: identifier.nullish() }, 'is not an object'),
)
const detail = ownedObject.transform(({ merchantCode }) => [merchantCode ?? undefined])
const list = z
  .looseObject({ docs: z.array(ownedObject, 'is not an array') }, 'is not an object')
  .transform(({ docs }) => docs.map(({ merchantCode }) => merchantCode ?? undefined))

/** Reads the answer to a card operation. It has failed if a required member is not as specified. */
export function readCardAnswer(
  body: Buffer,
  rules: CardEnvelopeRules,
  form: 'detail' | 'list',
): CardAnswer {
  const value = parseAnswer(body)
  const parsed = envelope.safeParse(value)
  if (!parsed.success) return toFailure(parsed.error, [])
  const idName = `${rules.prefix}ResponseId`
  const responseId = identifier.nullish().safeParse(parsed.data[idName])
  if (!responseId.success) return toFailure(responseId.error, [idName])
  const { code, message, data } = parsed.data
  if (code !== rules.successCode) {
    return refuse(rules, form, { status: 200, code, message: toMessage(message) })
  }
  const owners = (form === 'detail' ? detail : list).safeParse(data)
  if (!owners.success) return toFailure(owners.error, ['data'])
  return { kind: 'answered', envelope: maskEnvelope(value, rules.prefix), owners: owners.data }
}

/** Reads the answer to a card operation that the gateway refused by its HTTP status; its body may be anything. */
export function readCardRefusal(
  { status, body }: { status: number; body: Buffer },
  rules: CardEnvelopeRules,
  form: 'detail' | 'list',
): CardAnswer {
  const { code, message } = refusal.catch({}).parse(parseAnswer(body))
  return refuse(rules, form, {
    status,
    // With an error status the code of a success means nothing.
    ...(code === undefined || code === rules.successCode ? {} : { code }),
    message: toMessage(message),
  })
}

const refusal = z.object({
  code: responseCode.optional().catch(undefined),
  message: z.string().optional().catch(undefined),
})

function refuse(
  { notFoundCodes }: CardEnvelopeRules,
  form: 'detail' | 'list',
  { status, code, message }: { status: number; code?: string; message: string },
): CardAnswer {
  const isNotFound = status === 404 || (code !== undefined && notFoundCodes.includes(code))
  if (isNotFound && form === 'detail') return { kind: 'missing', message }
  return { kind: 'refused', status, ...(code === undefined ? {} : { code }), message }
}

function toFailure(error: z.ZodError, parentPath: readonly string[]): CardAnswer {
  const [issue] = error.issues
  const path = [...parentPath, ...(issue?.path ?? [])].join('.')
  return { kind: 'failed', reason: `${path} ${issue?.message}`.trim(), timedOut: false }
}

/** The identifiers, dates and policies of specification 2.2 and 2.3: masked they could not be used, nor compared. */
const CARD: UnmaskedMembers = {
  requestId: true,
  virtualCardRequestId: true,
  merchantId: true,
  merchantCode: true,
  createdAt: true,
  updatedAt: true,
  cardData: { cardExpiryDate: true },
  cardPolicy: {
    policyRequestId: true,
    policyRevision: true,
    cardCurrency: true,
    cardLimit: true,
    minTransAmount: true,
    maxTransAmount: true,
    autoCloseCard: true,
    activeOnCreate: true,
    supportedMccGroup: true,
  },
}

function maskEnvelope(value: unknown, prefix: string): CardEnvelope {
  const masked = maskCardData(value, {
    code: true,
    state: true,
    [`${prefix}ResponseId`]: true,
    data: { ...CARD, docs: CARD, totalDocs: true, totalPages: true },
  })
  return typeof masked === 'object' && masked !== null ? { ...masked } : {}
}
