import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startSandbox } from '../../../src/sandbox/start.ts'
import {
  DETAIL,
  ENVELOPE,
  ITEM,
  listTypes,
  listWanted,
  PAGE,
  WRONG_QUERIES,
} from '../../support/card-specification.ts'
import { MERCHANT } from '../../support/service.ts'
import { useStarted } from '../../support/use-started.ts'

const token = { kind: 'static' as const, accessToken: 'TOKEN' }
const sandbox = useStarted(
  () => startSandbox({ accounts: [{ ...MERCHANT, token }] }),
  (started) => started.stop(),
)

const Members = z.record(z.string(), z.unknown())
const Page = z.object({ docs: z.array(Members), totalDocs: z.number(), totalPages: z.number() })

async function read(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${sandbox.url}/v2/vc/virtual-cards${path}`, {
    headers: { authorization: 'Bearer TOKEN', ...headers },
  })
  return { status: response.status, envelope: Members.parse(await response.json()) }
}

const list = async (query = '') => Page.parse((await read(query)).envelope.data)
const listIds = async (query = '') =>
  (await list(query)).docs.map((card) => z.string().parse(card.virtualCardRequestId))

describe('the tables 2.1 to 2.3', () => {
  it('every card has every member of the detail, of its type, and none besides', async () => {
    const ids = await listIds('?pageSize=100')
    expect(ids).toHaveLength(14)
    for (const id of ids) {
      const { status, envelope } = await read(`/${id}`)
      expect(status).toBe(200)
      expect(listTypes(envelope)).toEqual(listWanted(ENVELOPE))
      expect(listTypes(envelope.data)).toEqual(listWanted(DETAIL))
      const { cardPolicy } = z.object({ cardPolicy: Members }).parse(envelope.data)
      expect(z.array(z.string()).safeParse(cardPolicy.supportedMccGroup).success).toBe(true)
    }
  })

  it('every item has every member of the list, of its type, and none besides', async () => {
    const { envelope } = await read('?pageSize=100')
    expect(listTypes(envelope)).toEqual(listWanted(ENVELOPE))
    expect(listTypes(envelope.data)).toEqual(listWanted(PAGE))
    for (const item of Page.parse(envelope.data).docs) {
      expect(listTypes(item)).toEqual(listWanted(ITEM))
    }
  })

  it('a refusal has the envelope, too, without data', async () => {
    for (const [path, wanted, sent] of [
      ['/NOBODY', 404, {}],
      ['?pageSize=0', 422, {}],
      ['', 401, { authorization: '' }],
      ['', 401, { authorization: 'Basic TOKEN' }],
      ['/VC-UFLIYL-0001', 401, { authorization: 'Bearer OTHER' }],
    ] as const) {
      const { status, envelope } = await read(path, sent)
      expect(status).toBe(wanted)
      expect(listTypes(envelope)).toEqual({ ...listWanted(ENVELOPE), data: 'null' })
      expect(envelope.code).not.toBe(1)
    }
  })
})

describe('the parameters of 4.2', () => {
  it('a wrong one is refused, and named', async () => {
    for (const { name, query } of WRONG_QUERIES) {
      const { status, envelope } = await read(query)
      expect({ query, status }).toEqual({ query, status: 422 })
      expect(envelope.message).toMatch(new RegExp(`\\b${name}\\b`))
    }
  })
})

it.each([
  ['vi', 'Thành công'],
  ['en', 'Successful'],
  ['de', 'Successful'],
])('the language %s: %s', async (language, message) => {
  const { envelope } = await read('', { 'accept-language': language })
  expect(envelope).toMatchObject({ code: 1, state: 2, message })
})
