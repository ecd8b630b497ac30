import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { createKey, revokeKey, rotateKey } from '../../../src/access/key-changes.ts'
import { findKeys, hashKey, SCOPES } from '../../../src/access/keys.ts'
import { addPerson, endPerson } from '../../../src/access/people.ts'
import { ensureFirstKey } from '../../../src/access/setting-keys.ts'
import { type Access, listScopes, type Role } from '../../../src/access/types.ts'
import { decideRefund } from '../../../src/decisions/refunds.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import type { Tx } from '../../../src/platform/postgres/types.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { findRefund } from '../../../src/refunds/find.ts'
import { requestRefund } from '../../../src/refunds/request.ts'
import { UNLIMITED } from '../../support/access.ts'
import { addPrincipal, openIn } from '../../support/approvals.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab({ settings: { REFUND_APPROVAL_ABOVE: 'VND:1' } })

/** Somebody else may always decide: otherwise a decision about one's own refund is allowed. */
beforeAll(() => addPrincipal(lab.database))

const MERCHANTS = [MERCHANT.merchantCode]

/** People, each with spellings of one name that `lower` of a database with the locale C takes for several. */
const SPELLINGS = [
  ['Nguyễn Ánh', 'NGUYỄN ÁNH', 'nguyễn  ánh', 'Nguyễn Ánh'.normalize('NFD'), ' Nguyễn\u00a0Ánh'],
  ['Οδυσσέας', 'ΟΔΥΣΣΈΑΣ', 'οδυσσέασ', 'Ο\u200bδυσσέας'],
  ['Weiß Ivan', 'WEISS IVAN', 'weiss ivan', 'Ｗeiß Ivan', 'WEIẞ İvan', 'weiss \u2800ıvan'],
  ['Ирина', 'ИРИНА', 'ирина'],
] as const

/** Who it is, as a reader of the model says: a person, or the first key of a chain. */
type Known = { id: string; whose: string; text?: string }

/** The actors of one sequence, live or not. */
function createWorld() {
  const known: Known[] = []
  const settings: string[] = []
  const tag = randomUUID()
  const sql = lab.database.sql
  const inTx = <T>(work: (tx: Tx) => Promise<T>) => runInTransaction(sql, work)
  const spell = (person: number, spelling: number) => {
    const all = SPELLINGS[person % SPELLINGS.length] ?? SPELLINGS[0]
    return { whose: `${person % SPELLINGS.length}`, name: `${all[spelling % all.length]} ${tag}` }
  }
  return {
    known,
    async addPerson(person: number, spelling: number) {
      const { whose, name } = spell(person, spelling)
      const roles: Role[] = ['agent', 'approver', 'operator']
      const added = await inTx((tx) =>
        addPerson(tx, { name, email: null, roles, merchants: ['*'] }),
      )
      if (added.kind === 'added') known.push({ id: added.id, whose })
    },
    async addKey(person: number, spelling: number, isOwn: boolean) {
      const { whose, name } = spell(person, spelling)
      const given = { scopes: SCOPES, merchantCode: '*', expiresAt: null, ...UNLIMITED }
      const of = isOwn ? null : name
      const { id, text } = await inTx((tx) => createKey(tx, { ...given, name: 'k', person: of }))
      known.push({ id, text, whose: isOwn ? id : whose })
    },
    async start() {
      const text = randomUUID()
      settings.push(text)
      await ensureFirstKey({ db: lab.database, log: createLog('silent') }, text, 3_600_000)
      const [row] = await sql<{ id: string }[]>`select id from actors where hash = ${hashKey(text)}`
      known.push({ id: row?.id ?? '', text, whose: 'setting' })
    },
    async rotate(one: Known) {
      const rotation = await inTx((tx) => rotateKey(tx, one.id, 3_600))
      if (rotation.kind === 'rotated') known.push({ ...rotation.created, whose: one.whose })
    },
    end: (one: Known) =>
      inTx<unknown>((tx) =>
        one.text === undefined ? endPerson(tx, one.id) : revokeKey(tx, one.id),
      ),
    change: (one: Known, isWide: boolean) =>
      one.text === undefined
        ? sql`
          update actors set roles = ${isWide ? ['admin'] : ['agent', 'approver', 'operator']}::text[],
            merchants = ${isWide ? ['*'] : MERCHANTS} where id = ${one.id}`
        : sql`update actors set merchants = ${isWide ? ['*'] : MERCHANTS} where id = ${one.id}`,
  }
}

type World = ReturnType<typeof createWorld>

/** The access of a request of a live actor; undefined for one that has ended. */
async function findAccess({ id, text }: Known): Promise<Access | undefined> {
  const { sql } = lab.database
  const more = {
    merchants: MERCHANTS,
    coversAll: false,
    requestId: 'r',
    required: new Set<never>(),
  }
  if (text !== undefined) {
    const [found] = await findKeys(sql, [hashKey(text).toString('hex')])
    const key = found?.status === 'fulfilled' ? found.value : undefined
    return key && { ...key, ...more }
  }
  const [person] = await sql<{ name: string; principal: string; roles: string[] }[]>`
    select name, principal, roles from actors where id = ${id} and ended_at is null`
  if (!person) return undefined
  const { name, principal, roles } = person
  const scopes = listScopes(roles)
  return { ...UNLIMITED, id, name, principal, scopes, chainId: id, isPerson: true, ...more }
}

/** What one does in a sequence; numbers choose among what there is. */
type Step = { kind: Kind; a: number; b: number; flag: boolean }

const KINDS = ['addPerson', 'addKey', 'start', 'rotate', 'end', 'change'] as const
type Kind = (typeof KINDS)[number]

async function take(world: World, { kind, a, b, flag }: Step): Promise<void> {
  if (kind === 'addPerson') return await world.addPerson(a, b)
  if (kind === 'addKey') return await world.addKey(a, b, flag)
  if (kind === 'start') return await world.start()
  const one = world.known[a % Math.max(1, world.known.length)]
  if (one === undefined) return
  if (kind === 'change') await world.change(one, flag)
  else if (kind === 'end') await world.end(one)
  else await world.rotate(one)
}

/** Requests a refund as one who can. */
async function request(access: Access, more: { onBehalfOf?: string } = {}): Promise<string> {
  const { id: paymentId } = await openIn(lab, 'VND')
  const params = { paymentId, amount: '10', receiver: undefined, reason: 'a test', ...more }
  const asked = await requestRefund(lab.service.ctx, access, MERCHANTS, randomUUID(), params)
  return asked.refundId
}

/** What became of an attempt of somebody to approve and to decide, over the domain's functions and past them. */
async function attempt(id: string, access: Access): Promise<string[]> {
  const { ctx } = lab.service
  const found = await findRefund(ctx, MERCHANTS, id)
  const refusal = (error: unknown) => String(Object(error).code)
  const approved = await decideRefund(ctx, found, { decision: 'approve' }, access).then(
    () => 'done',
    refusal,
  )
  if (approved === 'done') return [approved]
  const written = await lab.database.sql`
    update refunds set status = 'pending', due_at = now(), approved_at = now(), approved_fingerprint = '',
      approved_fingerprint_key_id = '', decided_by = k.name, folded_decided_by = k.folded_name,
      decided_principal = k.principal
    from actors as k where refund_id = ${id} and k.id = ${access.id}`.then(
    () => 'done',
    (error) => String(error.constraint_name),
  )
  await lab.database.sql`
    update refunds set status = 'needs_review', review = 'contradicted' where refund_id = ${id}`
  const review = await findRefund(ctx, MERCHANTS, id)
  const wish = { decision: 'failed', reason: 'a test' } as const
  const resolved = await decideRefund(ctx, review, wish, access).then(() => 'done', refusal)
  return [approved, written, resolved]
}

const REFUSED = ['same_person', 'refunds_decided_by_another', 'same_person']

const step = fc.record({
  kind: fc.constantFrom(...KINDS),
  ...{ a: fc.nat(20), b: fc.nat(4), flag: fc.boolean() },
})

it('no sequence of keys, people, spellings, roles and accounts makes one principal two', async () => {
  const seen = { own: 0, others: 0 }
  const sequence = fc.tuple(
    fc.array(step, { minLength: 6, maxLength: 14 }),
    fc.array(step, { maxLength: 8 }),
    fc.nat(),
    fc.nat(),
  )
  const property = fc.asyncProperty(sequence, async ([before, after, asks, decides]) => {
    const world = createWorld()
    for (const one of before) await take(world, one)
    const asker = world.known[asks % Math.max(1, world.known.length)]
    const asking = asker && (await findAccess(asker))
    if (!asker || !asking) return
    const id = await request(asking)
    for (const one of after) await take(world, one)
    // Those who are the same come first: a sequence is worth most with them.
    const others = world.known.filter(({ whose }) => whose === asker.whose)
    const pool = decides % 4 === 0 ? world.known : others
    const decider = pool[decides % pool.length]
    const deciding = decider && (await findAccess(decider))
    if (!decider || !deciding) return
    const isOwn = decider.whose === asker.whose
    seen[isOwn ? 'own' : 'others'] += 1
    expect(await attempt(id, deciding)).toEqual(isOwn ? REFUSED : ['done'])
  })
  await fc.assert(property, { numRuns: 40, endOnFailure: true })
  expect(seen.own).toBeGreaterThan(0)
})

/** What a key of its own requests on behalf of a person, in this spelling, they do not decide. */
async function expectUndecided(
  name: string,
  spell: (person: { id: string; email: string }) => string,
): Promise<void> {
  const email = `linh-${randomUUID()}@example.com`
  const roles: Role[] = ['approver', 'operator']
  const added = await addPerson(lab.database.sql, { name, email, roles, merchants: ['*'] })
  if (added.kind !== 'added') throw new Error('the name is taken')
  const world = createWorld()
  await world.addKey(0, 0, true)
  const [key] = world.known
  const asking = key && (await findAccess(key))
  const deciding = await findAccess({ id: added.id, whose: name })
  if (!asking || !deciding) throw new Error('there is no such actor')
  const refundId = await request(asking, { onBehalfOf: spell({ id: added.id, email }) })
  expect(await attempt(refundId, deciding)).toEqual(REFUSED)
}

it.each(SPELLINGS.flatMap((all) => all.map((spelling) => [all[0], spelling] as const)))(
  'what %s requested on behalf of %s is decided by neither',
  async (name, spelling) => {
    const tag = randomUUID()
    await expectUndecided(`${name} ${tag}`, () => `${spelling} ${tag.toUpperCase()}`)
  },
)

it.each(['email', 'id'] as const)(
  'what is requested on behalf of the %s of a person is not decided by them',
  (by) => expectUndecided(`Linh ${randomUUID()}`, (person) => person[by].toUpperCase()),
)
