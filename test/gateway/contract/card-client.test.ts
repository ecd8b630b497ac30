import { stringify } from 'lossless-json'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createBreakers } from '../../../src/gateway/breakers.ts'
import { createCardGateway } from '../../../src/gateway/card-gateway.ts'
import type { CardRequest } from '../../../src/gateway/card-request.ts'
import { serve } from '../../support/gateway.ts'
import { MERCHANT } from '../../support/service.ts'
import {
  build,
  CARD_STATUSES,
  type CardMember,
  DETAIL,
  ENVELOPE,
  ITEM,
  OTHER_STATUSES,
  PAGE,
} from './card-tables.ts'
import { listWrong } from './tables.ts'

type Members = Record<string, unknown>

/** The client's verdict on an answer, its envelope as JSON has it. */
async function read(request: Partial<CardRequest>, answer: unknown) {
  const { url, seen } = await serve((response) => response.end(JSON.stringify(answer)))
  const token = { kind: 'static' as const, accessToken: 'TOKEN' }
  const { merchantCode } = MERCHANT
  const client = createCardGateway({
    breakers: createBreakers(),
    baseUrl: url,
    prefix: 'svc',
    successCode: '1',
    notFoundCodes: [],
    timeoutMs: 5_000,
    maxConcurrency: 1,
    directory: { accounts: [{ merchantCode, secret: MERCHANT.secret, token }] },
    signal: new AbortController().signal,
    onCall: () => {},
  })
  onTestFinished(() => client.close())
  const outcome = await client.readCards({ merchantCode, ...request })
  expect(seen).toHaveLength(1)
  if (outcome.kind !== 'answered') return outcome
  return { kind: outcome.kind, envelope: JSON.parse(stringify(outcome.envelope) ?? '') }
}

/** An operation's answer whose data, or whose only item, is this. */
const OPERATIONS = [
  {
    operation: 'detail (4.1)',
    request: { virtualCardRequestId: 'VC-1' },
    table: DETAIL,
    wrap: (card: Members): Members => card,
    path: 'data',
  },
  {
    operation: 'list (4.2)',
    request: {},
    table: ITEM,
    wrap: (card: Members): Members => ({ ...build(PAGE), docs: [card] }),
    path: 'data.docs.0',
  },
]

const answer = (data: unknown, change: { name?: string; value?: unknown } = {}) => ({
  ...build(ENVELOPE.filter(({ name }) => name !== 'data')),
  data,
  ...(change.name === undefined ? {} : { [change.name]: change.value }),
})

/** The expected outcome when a member is left out, null, or of another type. */
function judge({ client }: CardMember, value: unknown): 'answered' | 'failed' {
  if (client === 'any') return 'answered'
  if (value === undefined) return client === 'required' ? 'failed' : 'answered'
  if (value === null) return client === 'required' ? 'failed' : 'answered'
  return client === 'identifier' && typeof value === 'number' ? 'answered' : 'failed'
}

const listChanges = ({ type }: CardMember) => [
  { what: 'left out', value: undefined },
  ...[{ value: null }, ...listWrong(type)].map(({ value }) => ({
    what: JSON.stringify(value),
    value,
  })),
]

describe.each(OPERATIONS)('$operation', ({ request, table, wrap, path }) => {
  const data = wrap(build(table))

  it('the right answer is one, and unknown members of it are kept, at every level', async () => {
    const card = { ...build(table), new: [{ any: null }] }
    const whole = answer({ ...wrap(card), page: 1 }, { name: 'svcNew', value: {} })
    expect(await read(request, whole)).toEqual({ kind: 'answered', envelope: whole })
  })

  describe.each(ENVELOPE)('$name of the envelope', (member) => {
    it.each(listChanges(member))('$what', async ({ value }) => {
      const whole = answer(data, { name: member.name, value })
      expect(await read(request, whole)).toMatchObject(
        judge(member, value) === 'answered'
          ? { kind: 'answered', envelope: JSON.parse(JSON.stringify(whole)) }
          : { kind: 'failed', reason: expect.stringContaining(member.name), timedOut: false },
      )
    })
  })

  describe.each(table)('$name of the card', (member) => {
    it.each(listChanges(member))('$what', async ({ value }) => {
      const whole = answer(wrap(build(table, { name: member.name, value })))
      const reason = expect.stringContaining(`${path}.${member.name}`)
      const outcome = await read(request, whole)
      if (judge(member, value) === 'failed') expect(outcome).toMatchObject({ reason })
      else if (member.name === 'cardData.cardCVV') expect(outcome.kind).toBe('answered')
      else expect(outcome).toEqual({ kind: 'answered', envelope: whole })
    })
  })

  it.each([...CARD_STATUSES, ...OTHER_STATUSES, 'NEVER_SEEN'])(
    'the status %s is passed on',
    async (status) => {
      const whole = answer(wrap(build(table, { name: 'status', value: status })))
      expect(await read(request, whole)).toEqual({ kind: 'answered', envelope: whole })
    },
  )
})

describe.each(PAGE)('$name of the list', (member) => {
  it.each(listChanges(member))('$what', async ({ value }) => {
    const whole = answer(build(PAGE, { name: member.name, value }))
    expect(await read({}, whole)).toMatchObject(
      judge(member, value) === 'answered'
        ? { kind: 'answered', envelope: whole }
        : { kind: 'failed', reason: expect.stringContaining(`data.${member.name}`) },
    )
  })
})

it.each(listWrong('object'))('$value in the place of a card of the list', async ({ value }) => {
  const whole = answer({ ...build(PAGE), docs: [build(ITEM), value] })
  const reason = expect.stringContaining('data.docs.1 is not an object')
  expect(await read({}, whole)).toMatchObject({ kind: 'failed', reason })
})
