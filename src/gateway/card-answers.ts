import { z } from '@hono/zod-openapi'
import { isLosslessNumber, type LosslessNumber } from 'lossless-json'
import type { Config } from '../config/config.ts'
import { isSecretName, maskCardData, type UnmaskedMembers } from '../platform/crypto/masking.ts'
import { parseObject, responseCode } from './answers.ts'
import { isObject } from './parse-body.ts'
import { hide, toMessage } from './storable.ts'

/** The members of a card envelope (specification 2.1) except `data`, for the OpenAPI document. */
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
  svcResponseId: z
    .union([z.string(), z.number()])
    .nullish()
    .describe('The identifier of the response; `svc` stands for `GATEWAY_FIELD_PREFIX`'),
}

/** Every member that the gateway sent, with card data masked. Numbers are `LosslessNumber`. */
export type CardEnvelope = Record<string, unknown>

/** The specification does not define the values of `code`, so the settings do. */
type CardEnvelopeRules = Pick<
  Config,
  'GATEWAY_FIELD_PREFIX' | 'GATEWAY_CARDS_SUCCESS_CODE' | 'GATEWAY_CARDS_NOT_FOUND_CODES'
>

export type CardAnswer =
  | {
      kind: 'answered'
      envelope: CardEnvelope
      /** The merchant code of each card, in order; undefined where a card has none. */
      owners: readonly (string | undefined)[]
    }
  | { kind: 'missing'; message: string }
  | { kind: 'refused'; status: number; code?: string; message: string }
  | { kind: 'failed'; reason: string; timedOut: boolean }

/** Some gateways write identifiers as numbers. */
const identifier = z.union(
  [z.string(), z.custom<LosslessNumber>(isLosslessNumber).transform(({ value }) => value)],
  'is not a string',
)
/** A `LosslessNumber` is an object in JavaScript, but not in JSON. */
const ownedObject = z.preprocess(
  (value) => (isLosslessNumber(value) ? undefined : value),
  z.looseObject({ merchantCode: identifier.nullish() }, 'is not an object'),
)
const OWNERS = {
  detail: ownedObject.transform(({ merchantCode }) => [merchantCode ?? undefined]),
  list: z
    .looseObject({ docs: z.array(ownedObject, 'is not an array') }, 'is not an object')
    .transform(({ docs }) => docs.map(({ merchantCode }) => merchantCode ?? undefined)),
}

/** Reads a response other than 401. A redirect counts as failed, and so does a code or `data` of another form. */
export function readCardResponse(
  { status, body }: { status: number; body: Buffer },
  rules: CardEnvelopeRules,
  form: 'detail' | 'list',
): CardAnswer {
  const members = parseObject(body)
  const isSuccess = status >= 200 && status <= 299
  if (!isSuccess && (status < 400 || status > 499)) return fail(`HTTP status ${status}`)
  if (isSuccess && !members) return fail('the answer is not a JSON object')
  const { code, message, data } = members ?? {}
  const read = responseCode.safeParse(code)
  if (isSuccess && !read.success) return fail(`code ${read.error.issues[0]?.message}`)
  // A success code means nothing beside an error status.
  const refusal = read.data === rules.GATEWAY_CARDS_SUCCESS_CODE ? undefined : read.data
  if (!isSuccess || refusal !== undefined) {
    const { GATEWAY_CARDS_NOT_FOUND_CODES: missing } = rules
    const isNotFound = status === 404 || missing.includes(refusal ?? '')
    if (isNotFound && form === 'detail') return { kind: 'missing', message: toMessage(message) }
    const refused = { kind: 'refused', status: isSuccess ? 200 : status } as const
    return { ...refused, ...(refusal && { code: refusal }), message: toMessage(message) }
  }
  const owners = OWNERS[form].safeParse(data)
  if (owners.success) {
    const envelope = maskEnvelope(members, rules.GATEWAY_FIELD_PREFIX)
    return { kind: 'answered', envelope, owners: owners.data }
  }
  const [issue] = owners.error.issues
  return fail(`${['data', ...(issue?.path ?? [])].join('.')} ${issue?.message}`)
}

function fail(reason: string): CardAnswer {
  return { kind: 'failed', reason, timedOut: false }
}

/** Identifiers, dates and policies (specification 2.2, 2.3), which could not be used or compared when masked. */
const CARD: UnmaskedMembers = {
  ...pass('requestId', 'virtualCardRequestId', 'merchantId', 'merchantCode'),
  ...pass('createdAt', 'updatedAt'),
  cardData: pass('cardExpiryDate'),
  cardPolicy: {
    ...pass('policyRequestId', 'policyRevision', 'cardCurrency', 'cardLimit', 'minTransAmount'),
    ...pass('maxTransAmount', 'autoCloseCard', 'activeOnCreate', 'supportedMccGroup'),
  },
}

function pass(...names: readonly string[]): UnmaskedMembers {
  return Object.fromEntries(names.map((name) => [name, true]))
}

function maskEnvelope(value: unknown, prefix: string): CardEnvelope {
  const masked = maskCardData(value, {
    ...pass('code', 'state', `${prefix}ResponseId`),
    data: { ...CARD, docs: CARD, ...pass('totalDocs', 'totalPages') },
  })
  return isObject(masked) ? { ...masked, data: hideSecrets(masked.data) } : {}
}

/** Hides credentials such as a PIN, which the gateway may add to a card at any depth. */
function hideSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hideSecrets)
  if (!isObject(value)) return value
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, one]) => [name, isSecretName(name) ? hide(one) : hideSecrets(one)]),
  )
}
