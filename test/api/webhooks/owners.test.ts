import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { addPerson } from '../../../src/access/people.ts'
import { endOrphanedEndpoints } from '../../../src/webhooks/endpoints.ts'
import { expectProblem } from '../../support/api.ts'
import { runCli } from '../../support/cli.ts'
import { serve } from '../../support/gateway.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import {
  callWebhooks,
  deliver,
  deliverLater,
  listIds,
  publish,
  readEndpoint,
  receive,
  register,
  useWebhookRig,
  work,
} from '../../support/webhooks.ts'

const { merchantCode } = MERCHANT
const ALONE = 'key-for-webhooks-alone-0123456789-01234'
const PAYMENTS = 'key-for-payments-and-webhooks-0123456789'
const EVERYTHING = 'key-of-another-team-of-the-account-012345'
const READS = ['payments:read', 'refunds:read']

const kept = keepLog()
const rig = useWebhookRig(kept.log)
beforeAll(async () => {
  await addKey(rig.database, ALONE, ['webhooks:write'], merchantCode)
  await addKey(rig.database, PAYMENTS, ['payments:read', 'webhooks:write'], merchantCode)
  await addKey(rig.database, EVERYTHING, [...READS, 'webhooks:write'], merchantCode)
})

const call = (method: string, path: string, body?: unknown, key?: string) =>
  callWebhooks(rig, method, path, body, key)
const cli = (...args: string[]) => runCli(args, { DATABASE_URL: rig.database.url })

const registerAs = (key: string, url: string, types?: string[]) => register(rig, url, types, key)

let made = 0
/** A key of its own for one test; its name is in `keys list`. */
async function makeKey(scopes: readonly string[] = [...READS, 'webhooks:write']) {
  made += 1
  const text = `key-number-${made}-of-the-tests-of-owners-0123456789`
  await addKey(rig.database, text, scopes, merchantCode)
  const [row] = await rig.database.sql<{ id: string }[]>`
    update actors set name = ${`owner-${made}`} where hash = ${hash(text)} returning id`
  return { text, id: row?.id ?? '' }
}
const hash = (text: string) => createHash('sha256').update(text).digest()

const endings: [string, (id: string) => PromiseLike<unknown>][] = [
  ['is revoked', (id) => rig.database.sql`update actors set ended_at = now() where id = ${id}`],
  ['expires', (id) => rig.database.sql`update actors set expires_at = now() where id = ${id}`],
]

describe('an endpoint whose key ends', () => {
  it.each(endings)(
    'gets nothing more once the key %s: no new event, none that waits',
    async (_, end) => {
      const [key, receiver] = [await makeKey(), await receive(500)]
      await registerAs(key.text, receiver.url)
      await deliver(rig, ['T-1'], { merchantCode })
      const sent = receiver.seen.length
      expect(sent).toBeGreaterThan(0)
      await end(key.id)
      await publish(rig, ['T-2'], { merchantCode })
      await deliverLater(rig)
      expect(receiver.seen).toHaveLength(sent)
    },
  )

  it('is disabled and named by the command that revokes the key, and what waits is kept for who takes it over', async () => {
    const [key, receiver] = [await makeKey(), await receive()]
    const { id } = await registerAs(key.text, receiver.url)
    const [first = ''] = await publish(rig, ['T-3'], { merchantCode })
    const revoked = await cli('keys', 'revoke', key.id, '--json')
    expect(JSON.parse(revoked.out)).toEqual({
      id: key.id,
      revoked: true,
      endpoints: [{ id, merchantCode, host: new URL(receiver.url).host }],
    })
    expect(await readEndpoint(rig, id)).toMatchObject({ disabledReason: 'key_ended' })
    await expectProblem(await call('POST', `/${id}/enable`, undefined, ALONE), 403, 'scope_missing')
    await expectProblem(
      await call('POST', `/${id}/enable`, undefined, PAYMENTS),
      403,
      'scope_missing',
    )
    const taken = await call('POST', `/${id}/enable`, undefined, EVERYTHING)
    expect(await taken.json()).toMatchObject({ id, owner: 'test', disabledReason: null })
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([first])
    expect(await endOrphanedEndpoints(rig.service.ctx)).toBe(0)
  })

  it('is not ended while another key of its chain is live, and is with the last', async () => {
    const [key, receiver] = [await makeKey(), await receive()]
    const { id } = await registerAs(key.text, receiver.url)
    const rotated = await cli('keys', 'rotate', key.id, '--json')
    const next = z.object({ id: z.string(), key: z.string() }).parse(JSON.parse(rotated.out))
    expect((await cli('keys', 'revoke', key.id)).out).not.toContain(id)
    const [event = ''] = await deliver(rig, ['T-4'], { merchantCode })
    expect(listIds(receiver.seen)).toEqual([event])
    expect((await cli('keys', 'revoke', next.id)).out).toContain(`\n${id}  127.0.0.1:`)
  })

  it('is disabled within a minute if nobody gave a command, with a warning', async () => {
    const key = await makeKey()
    const { id } = await registerAs(key.text, 'http://127.0.0.1:65535/hook')
    await rig.database.sql`update actors set expires_at = now() where id = ${key.id}`
    expect(await endOrphanedEndpoints(rig.service.ctx)).toBe(1)
    const warning = kept.saying('webhook endpoint disabled').at(-1)
    expect(warning).toMatchObject({ level: 40, endpointId: id, host: '127.0.0.1:65535' })
    expect(await readEndpoint(rig, id)).toMatchObject({ disabledReason: 'key_ended' })
  })

  it('belongs to whoever leads it elsewhere, so that the end of a stolen key ends that too', async () => {
    const [stolen, mine] = [await makeKey(), await receive()]
    const { id } = await registerAs(EVERYTHING, 'http://127.0.0.1:65535/hook')
    expect((await call('PATCH', `/${id}`, { url: mine.url }, stolen.text)).status).toBe(200)
    await cli('keys', 'revoke', stolen.id)
    await deliver(rig, ['T-5'], { merchantCode })
    expect(mine.seen).toEqual([])
  })

  it('belongs to whoever gives it other types, so that the owner may read what it gets', async () => {
    const [other, mine] = [await makeKey(), await receive()]
    const { id } = await registerAs(PAYMENTS, mine.url, ['payment.updated'])
    const types = ['payment.updated', 'refund.updated']
    expect((await call('PATCH', `/${id}`, { types }, other.text)).status).toBe(200)
    const [row] = await rig.database.sql`
      select key_chain_id as owner from webhook_endpoints where id = ${id}`
    expect(row).toEqual({ owner: other.id })
  })

  it('of a person ends with the access of the person', async () => {
    const name = 'Owner of an endpoint'
    const { sql } = rig.database
    const person = await addPerson(sql, {
      name,
      email: null,
      roles: ['operator'],
      merchants: ['A1', 'A2'],
    })
    if (person.kind !== 'added') throw new Error('the name is taken')
    const receiver = await receive()
    const { id } = await registerAs(EVERYTHING, receiver.url)
    await sql`
      update webhook_endpoints set merchant_code = '*',
        key_chain_id = ${person.id} where id = ${id}`
    const [first = ''] = await publish(rig, ['T-6'], { merchantCode: 'A2' })
    await deliver(rig, ['T-6'], { merchantCode: 'A3' })
    expect(listIds(receiver.seen)).toEqual([first])
    const removed = await cli('people', 'remove', name)
    expect(removed.out).toContain(`\n${id}  127.0.0.1:`)
    await deliver(rig, ['T-6'], { merchantCode: 'A1' })
    expect(receiver.seen).toHaveLength(1)
  })
})

describe('a key that loses a scope', () => {
  const lose = (id: string) => rig.database.sql`
    update actors set scopes = array['payments:read', 'webhooks:write'] where id = ${id}`

  it('gets no refund events any more, neither new ones nor those that wait', async () => {
    const key = await makeKey()
    const receiver = await receive(500)
    const { id } = await registerAs(key.text, receiver.url)
    const refund = { type: 'refund.updated', merchantCode }
    const [waiting = ''] = await deliver(rig, ['T-7'], refund)
    expect(listIds(receiver.seen)).toEqual([waiting])
    await lose(key.id)
    receiver.status = 204
    await publish(rig, ['T-7'], refund)
    const found = { type: 'discrepancy.found', merchantCode }
    const [named = '', plain = ''] = await publish(rig, ['T-7', 'T-8'], found)
    await rig.database.sql`
      update events set data = json_build_object('kind', 'amount_mismatch', 'refundId',
        case when id = ${named} then 'R-1' end) where id in (${named}, ${plain})`
    await deliverLater(rig)
    expect(listIds(receiver.seen)).toEqual([waiting, plain])
    expect(await readEndpoint(rig, id)).toMatchObject({ lastError: null, failingSince: null })
  })

  it('is asked again before every call, also while events are being sent', async () => {
    const key = await makeKey()
    const receiver = await serve(async (response, { headers }) => {
      if (headers['webhook-id'] === first) await lose(key.id)
      response.end()
    })
    await registerAs(key.text, receiver.url)
    const [first = ''] = await publish(rig, ['T-9'], { merchantCode })
    await publish(rig, ['T-9'], { type: 'refund.updated', merchantCode })
    const [last = ''] = await deliver(rig, ['T-9'], { merchantCode })
    expect(listIds(receiver.seen)).toEqual([first, last])
  })
})

describe('a key for webhooks alone', () => {
  it('can neither repeat, list, test nor enable what it may not read', async () => {
    const { id } = await registerAs(EVERYTHING, 'http://127.0.0.1:65535/hook')
    const [event = ''] = await publish(rig, ['T-11'], { merchantCode })
    const attempts: [string, string, unknown?][] = [
      ['POST', '/replay', { after: '0' }],
      ['GET', '/deliveries'],
      ['POST', `/deliveries/${event}/replay`],
      ['POST', '/deliveries/replay'],
      ['POST', '/test'],
      ['POST', '/enable'],
    ]
    for (const [method, path, body] of attempts) {
      for (const key of [ALONE, PAYMENTS]) {
        await expectProblem(await call(method, `/${id}${path}`, body, key), 403, 'scope_missing')
      }
    }
  })

  it('gets at an endpoint of its own what concerns endpoints, and nothing else by repeating all', async () => {
    const receiver = await receive()
    const { id, types } = await registerAs(ALONE, receiver.url)
    expect(types.filter((type) => !type.startsWith('webhook_endpoint.'))).toEqual([])
    const payments = { types: ['payment.updated'] }
    await expectProblem(await call('PATCH', `/${id}`, payments, ALONE), 403, 'scope_missing')
    await publish(rig, ['T-12'], { merchantCode })
    await rig.database
      .sql`update events set type = 'payment.updated' where merchant_code = ${merchantCode}`
    expect((await call('POST', `/${id}/replay`, { after: '0' }, ALONE)).status).toBe(202)
    await work(rig.service.ctx)
    expect(receiver.seen).toEqual([])
  })
})
