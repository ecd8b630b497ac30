import { computeRefundable } from '../../../../src/payments/find-payments.ts'
import { isFreed, type RefundRow, STATES } from '../../../../src/refunds/lifecycle.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import { Broken, type Machine } from './explore.ts'
import { listGateway } from './gateway.ts'
import { listOffered, listPeople, listRight } from './people.ts'
import { listService, listSteps } from './steps.ts'
import { tick } from './time.ts'
import { begin, isPortal, keyOf, type Setting, SUCCESS, type World } from './world.ts'

export type Options = Partial<Omit<Setting, 'checkSending'>>

/** Describes a small world, and what must hold in it. */
export function makeMachine(options: Options): Machine<World> {
  const setting: Setting = {
    ...{
      paid: 50,
      amounts: [30],
      hasPortal: false,
      early: [],
      faults: 0,
      settings: REFUND_SETTINGS,
    },
    ...options,
    checkSending: (world, of, row) => checkSending(world, setting, of, row),
  }
  const rested = new Set<number>()
  return {
    begin: begin(setting),
    key: keyOf,
    steps: (world) => listSteps(world, setting),
    check: (world) => checkAlways(world, setting) ?? comeToRest(world, setting, rested),
  }
}

const amountOf = ({ amounts }: Setting, of: number) => amounts[of] ?? 0

/** What of the payment is known to have moved, or may have, whatever the service knows of it. */
function measureMoved(world: World, setting: Setting, except?: number): number {
  return world.orders.reduce((sum, { moved, isOpen, cameBack }, of) => {
    const mayMove = moved > 0 || isOpen
    const isKnown = isPortal(of, setting) ? isPortalKnown(world, of) : isReserved(world.rows[of])
    const isLeft = cameBack || isReleasedWrongly(world, of)
    return of === except || !mayMove || isLeft || !isKnown ? sum : sum + amountOf(setting, of)
  }, 0)
}

/** What failed did so on evidence (`isProvenFailed`). */
const isReserved = (row: RefundRow | null | undefined) => !!row && row.status !== 'failed'

/** Its success was notified, and handled. */
const isPortalKnown = ({ heard, wrong }: World, of: number) =>
  heard[of]?.includes(SUCCESS) === true && !wrong.includes(of)

/** Two people said that it came back, and it did not. */
const isReleasedWrongly = ({ rows, wrong }: World, of: number) => {
  const row = rows[of]
  return wrong.includes(of) && !!row && isFreed(row)
}

/**
 * What the service has to leave alone, by what it knows: what the gateway shows or told it of, whichever is more, and every
 * wish whose end is not known.
 */
function measureKnown({ rows, external, payment }: World): number {
  const own = rows.flatMap((row) => (row && row.status !== 'failed' && !isFreed(row) ? [row] : []))
  const isKnown = (row: RefundRow) =>
    row.status === 'returned' || (row.status === 'succeeded' && !row.inferred)
  const sum = (some: readonly { amount: string }[]) =>
    some.reduce((total, { amount }) => total + Number(amount), 0)
  const elsewhere = external.filter(({ outcome }) => outcome === null)
  const told = Number(payment.first) + sum([...own.filter(isKnown), ...elsewhere])
  const shown = Number(payment.counted ?? payment.now)
  return Math.max(told, shown) + sum(own.filter((row) => !isKnown(row)))
}

/** Rules of every state, whatever follows. */
function checkAlways(world: World, setting: Setting): string | undefined {
  const { orders, rows, external, payment, lost } = world
  const { first } = payment
  for (const [of, { moved }] of orders.entries()) {
    if (moved > 1 && !lost.includes(of)) return `${of} has moved ${moved} times`
  }
  const own = rows.flatMap((row) => (row ? [row] : []))
  const counted = external.filter(({ outcome }) => outcome === null)
  const matched = [...own, ...counted].filter((one) => one.matched)
  const gross = orders.reduce((sum, { moved }, of) => sum + moved * amountOf(setting, of), 0)
  const explained = matched.reduce((sum, { amount }) => sum + Number(amount), Number(first))
  if (explained > gross) return `${explained} are matched, and ${gross} have moved`
  const left = computeRefundable({
    ...{ amount: String(setting.paid), refundedNow: payment.counted ?? payment.now },
    refundedAtFirst: first,
    matched: matched.map(({ amount }) => amount),
    reserved: [
      ...own.filter((row) => !row.matched && row.status !== 'failed' && !isFreed(row)),
      ...counted.filter((one) => !one.matched),
    ].map(({ amount }) => amount),
  })
  const moved = Math.max(measureMoved(world, setting), measureKnown(world))
  if (Number(left) > Math.max(0, setting.paid - moved))
    return `${left} can be refunded, and ${moved} have moved or may`
  return undefined
}

/** Rules of sending: nothing that is not due, too much, or held. */
function checkSending(world: World, setting: Setting, of: number, row: RefundRow): void {
  if (!['pending', 'unknown'].includes(row.status))
    throw new Broken(`${of} is sent, and is ${row.status}`)
  if (row.needsApproval && row.approvedAt === null)
    throw new Broken(`${of} is sent, and not approved`)
  if (row.hold !== null) throw new Broken(`${of} is sent, and is held`)
  if (world.query?.view !== 'listed') throw new Broken(`${of} is sent, and is not listed`)
  if (/[012]/.test(world.heard[of] ?? '')) throw new Broken(`${of} is sent, and was notified`)
  if (world.news[of]?.includes('requested')) throw new Broken(`${of} is sent on an older answer`)
  const moved = measureMoved(world, setting, of)
  if (moved + amountOf(setting, of) > setting.paid && !world.wrong.length) {
    throw new Broken(`${of} is sent beside ${moved} that have moved`)
  }
  const own = world.orders[of]
  if (
    own &&
    own.moved > 0 &&
    own.shown > 0 &&
    Number(world.query?.shown) >= amountOf(setting, of)
  ) {
    const others = world.orders.reduce(
      (sum, { shown }, one) => (one === of ? sum : sum + shown * amountOf(setting, one)),
      0,
    )
    if (Number(world.query?.shown) - others >= amountOf(setting, of))
      throw new Broken(`${of} is sent again although the answer shows it`)
  }
}

/** Steps of good news after which every refund has ended, or waits for a person. */
const LONGEST_EXIT = 40

/** Follows good news: every state must end well, or leave it to a person who can end it. */
function comeToRest(world: World, setting: Setting, rested: Set<number>): string | undefined {
  const path: number[] = []
  let at = world
  for (;;) {
    const key = keyOf(at)
    if (rested.has(key)) break
    path.push(key)
    if (path.length > LONGEST_EXIT) return 'no good news brings it to an end'
    const next = improve(at, setting, key)
    if (!next) {
      const fault = checkEnd(at, setting)
      if (fault) return `after good news: ${fault}`
      break
    }
    at = next
  }
  for (const key of path) rested.add(key)
  return undefined
}

function improve(world: World, setting: Setting, key: number): World | undefined {
  const goodNews = /accepts|has it already|moves|shows|listed again|^release/
  const news = [
    ...listGateway({ ...world, left: 0 }, setting),
    ...(setting.hasHolds
      ? listPeople({ ...world, left: 0 }, { ...setting, hasPeople: false })
      : []),
  ].find(({ name }) => goodNews.test(name) && !/portal/.test(name))
  if (news) return { ...news.next(), left: world.left }
  const service = [...listService(world, setting)].filter(({ name }) => !name.startsWith('request'))
  const told = service.find(({ name }) => /^(notify|reply|late reply|no answer|answer)/.test(name))
  if (told) return told.next()
  const ask = service.find(({ name }) => name === 'ask')
  const answered =
    ask &&
    [...listService(ask.next(), setting)].find(({ name }) => name.startsWith('answer'))?.next()
  if (answered && keyOf(answered) !== key) return answered
  return tick(world)
}

/** Discrepancies that show a person that a refund has moved although it failed, or has not although it succeeded. */
const MOVED = ['success_after_failure']
const NOT_MOVED = ['failure_after_success', 'refund_without_growth']

const isSeen = ({ growth, open }: World, kinds: readonly string[]) =>
  growth || open.some((kind) => kinds.includes(kind))

/** Whether everything is as the gateway has it, or a person sees that it is not. */
function checkEnd(world: World, setting: Setting): string | undefined {
  for (const [of, row] of world.rows.entries()) {
    const order = world.orders[of]
    if (!row || !order || world.wrong.includes(of)) continue
    const isOver = STATES[row.status].over
    const mayDecide = listOffered(row, setting).length > 0 || STATES[row.status].unsent
    if (!isOver && !mayDecide) return `${of} stays ${row.status}`
    if (row.status === 'needs_review' && listRight(row, order, setting).length === 0)
      return `nobody can end ${of}`
    if (row.status === 'failed' && order.moved > 0 && !order.cameBack && !isSeen(world, MOVED))
      return `${of} failed, and has moved`
    if (
      row.status === 'succeeded' &&
      order.moved === 0 &&
      !isSeen(world, NOT_MOVED) &&
      !isAccepted(world, setting, row)
    ) {
      return `${of} succeeded, and has not moved`
    }
  }
  return undefined
}

/** A success inferred from growth that a portal refund made which was never notified: `docs/refunds.md` says so. */
function isAccepted(
  { orders, external }: World,
  { hasPortal, amounts }: Setting,
  row: RefundRow,
): boolean {
  const portal = orders[amounts.length - 1]
  return hasPortal && row.inferred && portal?.moved === 1 && external.length === 0
}
