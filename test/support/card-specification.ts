import type { Member } from './specification.ts'

/** The specification's tables of virtual cards as data; a member inside another is named by its path. */

export type CardMember = Member & {
  /** What the client takes in its place: nothing else, nothing or `null`, a text or a number as well, or anything. */
  client: 'required' | 'nullable' | 'identifier' | 'any'
}

/** 3, and those that such gateways are known to send. */
export const CARD_STATUSES = ['INACTIVED', 'ACTIVED'] as const
export const OTHER_STATUSES = ['INACTIVE', 'ACTIVE', 'EXPIRED', 'LOCKED', 'FAILED'] as const

/** 2.1. */
export const ENVELOPE: readonly CardMember[] = [
  { name: 'code', type: 'number', sample: 1, client: 'required' },
  { name: 'state', type: 'number', sample: 2, client: 'any' },
  { name: 'data', type: 'object', sample: {}, client: 'required' },
  { name: 'message', type: 'string', sample: 'Successful', client: 'any' },
  { name: 'svcResponseId', type: 'string', sample: 'RESP-1', client: 'any' },
]

const member = (
  name: string,
  type: Member['type'],
  sample: unknown,
  client: CardMember['client'] = 'any',
): CardMember => ({ name, type, sample, client })

const ids = [
  member('requestId', 'string', 'REQ-1'),
  member('virtualCardRequestId', 'string', 'VC-1'),
  member('merchantCode', 'string', 'UFLIYL', 'identifier'),
  member('cardData.cardHolderName', 'string', 'NGUYEN VAN A'),
  member('cardData.cardBrand', 'string', 'visa'),
]
const policy = [
  member('cardPolicy.policyRequestId', 'string', 'POL-1'),
  member('cardPolicy.policyRevision', 'number', 3),
  member('cardPolicy.cardCurrency', 'string', 'VND'),
  member('cardPolicy.cardLimit', 'number', 10000.5),
  member('cardPolicy.minTransAmount', 'number', 1),
  member('cardPolicy.maxTransAmount', 'number', 99.99),
  member('cardPolicy.autoCloseCard', 'boolean', false),
]
const rest = [
  member('status', 'string', 'ACTIVED'),
  member('extraInfo', 'object', {}),
  member('createdAt', 'string', '2026-11-20T09:33:03.254Z'),
  member('updatedAt', 'string', '2026-11-21T09:33:03.254Z'),
]

/** 2.2. */
export const DETAIL: readonly CardMember[] = [
  ...ids,
  member('cardData.cardNumber', 'string', '411111******1111'),
  member('cardData.cardExpiryDate', 'string', '2028-12'),
  member('cardData.cardCVV', 'string', '***'),
  ...policy,
  member('cardPolicy.activeOnCreate', 'boolean', true),
  member('cardPolicy.supportedMccGroup', 'array', ['TRAVEL']),
  ...rest,
]

/** 2.3, the items and what they stand in. */
export const ITEM: readonly CardMember[] = [
  ...ids,
  member('merchantId', 'string', '64f1a2b3c4d5e6f708192a3b'),
  member('merchantEmail', 'string', 'shop@example.com'),
  ...policy,
  ...rest,
]
export const PAGE: readonly CardMember[] = [
  member('docs', 'array', [], 'required'),
  member('totalDocs', 'number', 0),
  member('totalPages', 'number', 0),
]

/** 4.2. A text is never of the wrong type: what is wrong is to give it twice. */
export const PARAMETERS: readonly { name: string; right: string; wrong: readonly string[] }[] = [
  { name: 'pageIndex', right: '1', wrong: ['text', '1.5', '0', '-1', '1e1', 'true', '[]', ' 1'] },
  { name: 'pageSize', right: '5', wrong: ['text', '1.5', '0', '-1', '101', 'true', '{}', '0x5'] },
  { name: 'dateFr', right: '2026-01-02', wrong: ['text', '5', 'true', '2026-02-30', '2026-1-2'] },
  { name: 'dateTo', right: '2026-01-08', wrong: ['text', '5', 'true', '2026-13-01', '01/02/2026'] },
  { name: 'requestId', right: 'BATCH-UFLIYL-1', wrong: ['a&requestId=b'] },
  { name: 'status', right: 'ACTIVED', wrong: ['ACTIVED&status=LOCKED'] },
  { name: 'cardBrand', right: 'visa', wrong: ['visa&cardBrand=jcb'] },
]

/** A query with one parameter of the wrong type. */
export const WRONG_QUERIES = PARAMETERS.flatMap(({ name, wrong }) =>
  wrong.map((value) => ({
    name,
    query: `?${name}=${value.replaceAll(/[ [\]{}]/g, encodeURIComponent)}`,
  })),
)

type Members = Record<string, unknown>

/** An object with the samples of a table, and `change` in the place of one of them. */
export function build(
  table: readonly CardMember[],
  change: { name?: string; value?: unknown } = {},
): Members {
  const whole: Members = {}
  for (const { name, sample } of table) {
    const path = name.split('.')
    const last = path.pop() ?? ''
    const value = name === change.name ? change.value : sample
    if (value !== undefined) reach(whole, path)[last] = value
  }
  return whole
}

/** Returns the object at a path, creating those on the way. */
function reach(whole: Members, path: readonly string[]): Members {
  let at = whole
  for (const name of path) {
    const next = at[name]
    const found = isMembers(next) ? next : {}
    at[name] = found
    at = found
  }
  return at
}

/** The paths and types of an object's members: `cardData` and `cardPolicy` by what is in them. */
export function listTypes(value: unknown, above = ''): Record<string, string> {
  if (!isMembers(value)) return { [above]: typeof value }
  const found = Object.entries(value).map(([name, one]) => {
    const isGroup = /^card(Data|Policy)$/.test(name) && isMembers(one)
    return isGroup ? listTypes(one, `${name}.`) : { [above + name]: nameType(one) }
  })
  return Object.assign({}, ...found)
}

function nameType(value: unknown): string {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}

/** What `listTypes` returns for an object that matches its table. */
export function listWanted(table: readonly CardMember[]): Record<string, string> {
  return Object.fromEntries(table.map(({ name, type }) => [name, type]))
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
