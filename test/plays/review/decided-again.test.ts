import { describe, expect, it } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { expectRefused } from '../../support/ask.ts'
import { AGAINST, act, done, type Person, usePerson, whileAlone } from '../../support/people.ts'
import { CONFIRM_MS, type LabRefund } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const [anh, binh] = [usePerson(lab), usePerson(lab)]

const addPerson = async (more: Parameters<typeof addPrincipal>[1]) =>
  act(lab, await addPrincipal(lab.database, more))

type Outcome = 'succeeded' | 'failed' | 'returned'

async function decide(
  who: Pick<Person, 'decide'>,
  refundId: string,
  outcome: Outcome,
  more: object = {},
) {
  const refund = await done(who.decide(refundId, outcome, more), Refund)
  expect(refund.status).toBe(outcome)
  return refund
}

const refuse = async (who: Pick<Person, 'decide'>, refundId: string, outcome: Outcome) => {
  const refused = await who.decide(refundId, outcome)
  return (await expectRefused(refused, 409, 'against_evidence')).detail
}

/** A refund of 30 out of 100 whose success was notified, before the ledger books it: reserved. */
async function makeNotified(): Promise<LabRefund> {
  const { payment, refundId } = await lab.openSent()
  await lab.show(payment, '0')
  await lab.passNotified(payment, refundId, '30')
  await lab.expectRefund(refundId, 'succeeded', { matched: false })
  return { payment, refundId }
}

/** A refund of 30 out of 100 without an answer, which a person has to decide. */
async function makeDoubtful(): Promise<LabRefund> {
  const { payment, refundId } = await lab.openSent('reset')
  await lab.age(refundId, CONFIRM_MS)
  return { payment, refundId }
}

/** A refund of which Anh decided this last. */
async function makeDecided(outcome: Outcome): Promise<LabRefund> {
  const made = outcome === 'returned' ? await lab.openMatched() : await makeDoubtful()
  await decide(anh, made.refundId, outcome)
  return made
}

describe('an inferred success', () => {
  it('is confirmed by anybody at once: it is known, and matched by the next answer', async () => {
    const { payment, refundId } = await lab.openInferred()
    expect(await lab.left(payment)).toBe('40')
    const shown = await decide(anh, refundId, 'succeeded')
    expect(shown).toMatchObject({ inferred: false, selfDecided: false })
    expect(await lab.row(refundId)).toMatchObject({ inferred: false, matched: false })
    expect(await lab.left(payment)).toBe('40')
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ inferred: false, matched: true })
    expect(await lab.left(payment)).toBe('70')
  })

  it('is denied only against the growth, which then speaks against it no more', async () => {
    const { payment, refundId } = await lab.openInferred()
    expect(await refuse(anh, refundId, 'failed')).toContain('the refunded amount grew to 30')
    await decide(anh, refundId, 'failed', AGAINST)
    expect(await lab.row(refundId)).toMatchObject({
      ...{ inferred: false, matched: false, decidedGrowth: '30' },
    })
    expect(await lab.left(payment)).toBe('70')
  })
})

describe('a success or a return is no dead end', () => {
  it('a mis-click on returned: another person decides that it succeeded, and it stays matched', async () => {
    const { payment, refundId } = await makeDecided('returned')
    const why = await refuse(binh, refundId, 'succeeded')
    expect(why).toContain('a person decided that it came back')
    await decide(binh, refundId, 'succeeded', AGAINST)
    expect(await lab.row(refundId)).toMatchObject({ matched: true, returnSightings: 0 })
    expect(await lab.left(payment)).toBe('70')
    expect(await lab.disagreements(payment)).toContain('decided_against_evidence')
  })

  it('a bounce before the ledger booked it: a second person releases it at once', async () => {
    const { payment, refundId } = await makeNotified()
    await decide(anh, refundId, 'returned')
    for (let n = 0; n < 3; n += 1) await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
    await decide(binh, refundId, 'returned')
    expect(await lab.row(refundId)).toMatchObject({ returnSightings: 2, returnSeenAt: null })
    expect(await lab.left(payment)).toBe('100')
    // The ledger books both later.
    await lab.passShowing(payment, '30')
    expect(await lab.left(payment)).toBe('70')
    await lab.show(payment, '0')
    await lab.passTwice(payment, refundId)
    expect(await lab.left(payment)).toBe('100')
  })

  it('a bounce and a new refund booked in one night: the second word frees what nobody can see', async () => {
    const { payment, refundId } = await makeDecided('returned')
    const other = await lab.send(payment, '30')
    // It fell by 30 and grew by 30 between two answers.
    await lab.notify(payment, other, '30')
    for (let n = 0; n < 3; n += 1) await lab.pass(payment)
    expect(await lab.left(payment)).toBe('40')
    await decide(binh, refundId, 'returned')
    await lab.pass(payment)
    await lab.expectRefund(other, 'succeeded', { matched: true })
    expect(await lab.left(payment)).toBe('70')
  })

  it('a ledger that books 27 of 30, and takes 27 back: the second word releases all of it', async () => {
    const { payment, refundId } = await makeDecided('returned')
    await lab.show(payment, '3')
    for (let n = 0; n < 2; n += 1) await lab.passTwice(payment, refundId)
    expect(await lab.left(payment)).toBe('70')
    await decide(binh, refundId, 'returned')
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('97')
  })

  it('a ledger that books 27 of 30: a person ends the reservation of a success that never shows', async () => {
    const { payment, refundId } = await makeNotified()
    await lab.passShowing(payment, '27')
    expect(await lab.left(payment)).toBe('43')
    const why = await refuse(anh, refundId, 'failed')
    expect(why).toContain('the gateway notified that it succeeded')
    await decide(anh, refundId, 'failed', AGAINST)
    expect(await lab.left(payment)).toBe('73')
  })
})

describe('the second word on a refund that came back', () => {
  it('releases it at once; the refunded amount decides what is left', async () => {
    const { payment, refundId } = await makeDecided('returned')
    await decide(binh, refundId, 'returned')
    expect(await lab.row(refundId)).toMatchObject({
      ...{ status: 'returned', matched: false, returnSightings: 2, returnSeenAt: null },
      decidedGrowth: '30',
    })
    expect(await lab.left(payment)).toBe('70')
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('100')
    const freed = await lab.database.sql`
      select after, cause from changes where refund_id = ${refundId} and field = 'freed'`
    expect(freed).toMatchObject([{ after: '30', cause: expect.stringContaining('two people') }])
  })

  it('between the two answers that show it releases it as well, once', async () => {
    const { payment, refundId } = await makeDecided('returned')
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('70')
    await decide(binh, refundId, 'returned')
    expect(await lab.left(payment)).toBe('100')
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('100')
    const refused = await expectRefused(
      await anh.decide(refundId, 'returned'),
      409,
      'not_decidable',
    )
    expect(refused.detail).toContain('its amount is released already')
  })

  it('may hide the growth of what was sent meanwhile: that one does not fail, and nothing is inferred', async () => {
    const { payment, refundId } = await makeDecided('returned')
    await lab.fault('acceptThenCode', { code: 33 })
    const other = await lab.send(payment, '30')
    await decide(binh, refundId, 'returned')
    await lab.passTwice(payment, other)
    await lab.expectRefund(other, 'unknown', { inferred: false })
  })

  it('leaves its growth, from which no refund that was open before is inferred', async () => {
    const { payment, refundId } = await lab.openSent()
    const other = await lab.send(payment, '30')
    await lab.notify(payment, refundId, '30')
    await lab.passShowing(payment, '30')
    await lab.expectRefund(refundId, 'succeeded', { matched: true })
    await decide(anh, refundId, 'returned')
    await decide(binh, refundId, 'returned')
    await lab.pass(payment)
    await lab.expectRefund(other, 'accepted', { inferred: false })
    await lab.passShowing(payment, '0')
    await lab.show(payment, '30')
    await lab.passNotified(payment, other, '30')
    await lab.expectRefund(other, 'succeeded', { matched: true })
  })

  it('of one from before the payment was first seen takes it out of that first sight', async () => {
    const { payment, refundId } = await lab.openMatched()
    await lab.database.sql`update payments set refunded_at_first = 30`
    await lab.database.sql`update refunds set matched = false, in_first_sight = true`
    await decide(anh, refundId, 'returned')
    await decide(binh, refundId, 'returned')
    expect(await lab.row(refundId)).toMatchObject({ inFirstSight: false, returnSightings: 2 })
    expect(await lab.left(payment)).toBe('70')
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('100')
  })
})

describe('a released refund', () => {
  async function makeReleased(): Promise<LabRefund> {
    const made = await makeDecided('returned')
    await decide(binh, made.refundId, 'returned')
    await lab.show(made.payment, '0')
    await lab.pass(made.payment)
    expect(await lab.left(made.payment)).toBe('100')
    return made
  }

  it('that another person decides to have succeeded is reserved again', async () => {
    const { payment, refundId } = await makeReleased()
    await decide(anh, refundId, 'succeeded', AGAINST)
    expect(await lab.row(refundId)).toMatchObject({ matched: false, returnSightings: 0 })
    expect(await lab.left(payment)).toBe('70')
  })

  it('that another person decides to have failed stays free', async () => {
    const { payment, refundId } = await makeReleased()
    await decide(anh, refundId, 'failed', AGAINST)
    expect(await lab.row(refundId)).toMatchObject({ returnSightings: 0 })
    expect(await lab.left(payment)).toBe('100')
  })

  it('that answers released succeeded only against them', async () => {
    const { payment, refundId } = await makeDecided('returned')
    await lab.show(payment, '0')
    for (let n = 0; n < 2; n += 1) await lab.pass(payment)
    await lab.database.sql`
      update refunds set return_sightings = 2, return_seen_at = now() where refund_id = ${refundId}`
    const why = await refuse(binh, refundId, 'succeeded')
    expect(why).toContain('two answers showed the refunded amount lower by it')
  })
})

describe('what a person decided', () => {
  it.each([
    ['succeeded', 'failed', 'You can decide `returned`'],
    ['failed', 'returned', 'You can decide `succeeded`'],
    ['returned', 'succeeded', 'another person has to decide `succeeded`'],
    ['returned', 'failed', 'another person has to decide `failed`'],
    ['returned', 'returned', 'a second person releases its amount at once'],
  ] as const)(
    'as %s is decided as %s by another principal only',
    async (before, outcome, instead) => {
      const { refundId } = await makeDecided(before)
      const rows = await lab.database.sql`select * from refunds`
      const refused = await anh.decide(refundId, outcome, AGAINST)
      const { detail } = await expectRefused(refused, 403, 'same_person')
      expect(detail).toContain(`is ${before} because you decided so`)
      expect(detail).toContain(instead)
      expect(await lab.database.sql`select * from refunds`).toEqual(rows)
      const decided = await decide(binh, refundId, outcome, AGAINST)
      expect(decided.selfDecided).toBe(false)
    },
  )

  it('is decided otherwise neither with a rotated key nor with another key of the same person', async () => {
    const { refundId } = await makeDecided('returned')
    const rotated = await addPerson({ rotates: anh })
    await expectRefused(await rotated.decide(refundId, 'returned'), 403, 'same_person')
    const person = `Chi ${crypto.randomUUID()}`
    const one = await addPerson({ person })
    const other = await addPerson({ person: person.toUpperCase() })
    await decide(one, refundId, 'succeeded', AGAINST)
    await expectRefused(await other.decide(refundId, 'failed', AGAINST), 403, 'same_person')
  })

  it('as failed is decided as succeeded by the same one too: that only reserves again', async () => {
    const { payment, refundId } = await makeDecided('failed')
    await refuse(anh, refundId, 'succeeded')
    await decide(anh, refundId, 'succeeded', AGAINST)
    expect(await lab.left(payment)).toBe('70')
  })

  it('and evidence ended otherwise since is decided by anybody', async () => {
    const { payment, refundId } = await makeDecided('failed')
    await lab.passNotified(payment, refundId, '30')
    await lab.expectRefund(refundId, 'succeeded')
    await refuse(anh, refundId, 'failed')
    await decide(anh, refundId, 'failed', AGAINST)
  })
})

describe('what evidence decided', () => {
  it('as succeeded fails only against the notification and the refunded amount that shows it', async () => {
    const { payment, refundId } = await lab.openMatched()
    const why = await refuse(anh, refundId, 'failed')
    expect(why).toContain('the gateway notified that it succeeded')
    expect(why).toContain('the refunded amount shows it')
    await decide(anh, refundId, 'failed', AGAINST)
    expect(await lab.row(refundId)).toMatchObject({
      ...{ inferred: false, matched: false, inFirstSight: false },
      decidedGrowth: '30',
    })
    expect(await lab.left(payment)).toBe('70')
  })

  it('as failed comes back against the notified failure, and is reserved', async () => {
    const { payment, refundId } = await makeDoubtful()
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.database.sql`
      update refunds set status = 'failed', due_at = null, failure_source = 'gateway', failure_reason = '5',
        failure_code = '5' where refund_id = ${refundId}`
    await refuse(anh, refundId, 'returned')
    await decide(anh, refundId, 'returned', AGAINST)
    expect(await lab.row(refundId)).toMatchObject({ failureSource: null, returnSightings: 0 })
    expect(await lab.left(payment)).toBe('70')
  })
})

describe('where no other principal may decide for the merchant', () => {
  const waited = (refundId: string, ms: number) => lab.database.sql`
    update refunds set resolved_at = resolved_at - ${ms}::float8 * interval '1 millisecond'
    where refund_id = ${refundId}`

  it.each([
    ['succeeded', 'failed'],
    ['failed', 'returned'],
    ['returned', 'succeeded'],
    ['returned', 'failed'],
    ['returned', 'returned'],
  ] as const)(
    'what was decided as %s is decided as %s by the same one, after REFUND_CONFIRM_FAILED_MS',
    async (before, outcome) => {
      const { refundId } = await makeDecided(before)
      await whileAlone(lab, anh, async () => {
        await waited(refundId, CONFIRM_MS - 60_000)
        const early = await anh.decide(refundId, outcome, AGAINST)
        const { detail } = await expectRefused(early, 409, 'not_decidable')
        expect(detail).toMatch(/you can decide it again in \d+ s/)
        await waited(refundId, 60_000)
        const decided = await decide(anh, refundId, outcome, AGAINST)
        expect(decided.selfDecided).toBe(true)
      })
      expect((await lab.proof(refundId)).evidence).toContain('which also decided before')
    },
  )

  it('a later decision of another principal is no self-decision any more', async () => {
    const { refundId } = await makeDecided('succeeded')
    await lab.database.sql`update refunds set self_decided = true`
    const decided = await decide(binh, refundId, 'failed', AGAINST)
    expect(decided.selfDecided).toBe(false)
  })
})
