import type { GatewayOutcome } from '../../../../src/gateway/types.ts'
import type { Step } from './explore.ts'
import {
  type Call,
  FAILURE,
  isPortal,
  OPEN,
  type Order,
  OTHER,
  readLedger,
  type Setting,
  SUCCESS,
  UNCLEAR,
  type View,
  type World,
} from './world.ts'

type Steps = Generator<Step<World>>
type Reply = GatewayOutcome<string | undefined>
const ACCEPTED: Reply = { kind: 'answered', value: 'G', message: '' }
const SILENT: Reply = { kind: 'unknown', reason: 'reset' }
const refuse = (code: string): Reply => ({ kind: 'rejected', code, message: '' })

/** What the gateway, its portal, its wire, and machines do. What goes wrong is named a fault, and costs one. */
export function* listGateway(world: World, setting: Setting): Steps {
  const { call, late, orders, query, view } = world
  for (const open of [call, late]) {
    if (open && open.reply === null) yield* listReplies(world, setting, open)
  }
  if (call && !late)
    yield* fault(world, 'its lease is lost', (w) => ({ ...w, call: null, late: call }))
  if (call?.reply) yield* fault(world, 'the process dies', (w) => ({ ...w, call: null }))
  for (const of of orders.keys()) yield* listOrder(world, setting, of)
  const portal = setting.amounts.length - 1
  if (setting.hasPortal && orders[portal]?.moved === 0) {
    const make = (ipns: string[]) => (w: World) => ({
      ...w,
      orders: change(orders, portal, () => ({ moved: 1, ipns })),
    })
    yield { name: 'the portal refunds', next: () => make([SUCCESS])(world) }
    yield* fault(world, 'the portal refunds, and never says so', make([]))
  }
  if (!query && !call) {
    for (const shown of world.earlier) {
      if (Number(shown) === readLedger(world, setting)) continue
      yield* fault(world, `ask a stale replica that shows ${shown}`, (w) => ask(w, Number(shown)))
    }
  }
  if (setting.hasOddAnswers) {
    const see = (next: View) => (w: World) => ({ ...w, view: next })
    if (view !== 'listed')
      yield { name: 'the payment is listed again', next: () => see('listed')(world) }
    else {
      yield* fault(world, 'the payment is not listed', see('gone'))
      yield* fault(world, 'the payment cannot be read', see('unreadable'))
      yield* fault(world, 'the payment has a status that nobody knows', see('strange'))
    }
  }
  if (setting.losesRows && !call && !late && !query) {
    for (const [of, row] of world.rows.entries()) {
      if (row === null) continue
      yield* fault(world, `the row of ${of} is lost`, (w) => ({
        ...w,
        rows: w.rows.map((one, index) => (index === of ? null : one)),
        lost: [...w.lost, of].sort(),
      }))
    }
  }
}

export function fault(world: World, name: string, make: (w: World) => World): Step<World>[] {
  const { left } = world
  if (left === 0) return []
  return [{ name: `${name} (fault)`, next: () => make({ ...world, left: left - 1 }) }]
}

export function ask(world: World, shown: number): World {
  const inbox = world.inbox.map((one) => ({ ...one, isNews: false }))
  const query = { shown: String(shown), view: world.view }
  return { ...world, inbox, query, news: world.news.map(() => '') }
}

/** What becomes of a refund that the gateway has. */
function* listOrder(world: World, setting: Setting, of: number): Steps {
  const { orders } = world
  const order = orders[of]
  if (!order) return
  const patch = (make: (one: Order) => Partial<Order>) => (w: World) => ({
    ...w,
    orders: change(w.orders, of, make),
  })
  if (order.isOpen) {
    const end = (code: string, moved: number) => () =>
      patch(({ ipns }) => ({
        ...{ isOpen: false, moved: order.moved + moved, ipns: [...ipns, code] },
      }))(world)
    yield { name: `the gateway moves ${of}`, next: end(SUCCESS, 1) }
    yield { name: `the gateway fails ${of}`, next: end(FAILURE, 0) }
    if (setting.hasOddCodes)
      yield { name: `the gateway fails ${of} unclearly`, next: end(UNCLEAR, 0) }
  }
  if (order.shown < order.moved && !order.cameBack) {
    yield { name: `the ledger shows ${of}`, next: () => show(world, setting, of, 1) }
  }
  if (order.cameBack && order.shown > 0) {
    yield { name: `the ledger shows ${of} back`, next: () => show(world, setting, of, -1) }
  }
  for (const code of order.ipns) {
    const drop = patch(({ ipns }) => ({ ipns: ipns.filter((one) => one !== code) }))
    yield* fault(world, `the notification ${code} of ${of} is lost`, drop)
  }
  const heard = world.heard[of] ?? ''
  const isNew = (code: string) => !heard.includes(code) && !order.ipns.includes(code)
  if (setting.hasOddCodes && order.received > 0) {
    for (const code of [OPEN, OTHER].filter(isNew)) {
      const tell = patch(({ ipns }) => ({ ipns: [...ipns, code] }))
      yield* fault(world, `${of} is notified as ${code}`, tell)
    }
  }
  const isTold = order.ipns.length > 0 || order.isOpen
  if (
    isTold ||
    (order.received === 0 && !isPortal(of, setting)) ||
    order.moved + order.received === 0
  )
    return
  const lies = order.moved > 0 ? [FAILURE] : [SUCCESS]
  for (const code of lies.filter(isNew)) {
    yield* fault(world, `${of} is notified as ${code}`, (w) => ({
      ...patch(() => ({ ipns: [code] }))(w),
      wrong: [...new Set([...w.wrong, of])].sort(),
    }))
  }
  if (!setting.hasOddCodes) return
  for (const code of heard.replaceAll(OTHER, '').replaceAll(OPEN, '')) {
    const tell = patch(() => ({ ipns: [code] }))
    yield* fault(world, `${of} is notified as ${code} again`, tell)
  }
  if (order.moved === 0 && heard.includes(FAILURE) && isNew(UNCLEAR)) {
    const tell = patch(() => ({ ipns: [UNCLEAR] }))
    yield* fault(world, `${of} is notified with another failure`, tell)
  }
}

export function change(
  orders: readonly Order[],
  of: number,
  patch: (order: Order) => Partial<Order>,
): Order[] {
  return orders.map((one, index) => (index === of ? { ...one, ...patch(one) } : one))
}

/** What may become of a call whose attempt is recorded. */
function* listReplies(world: World, setting: Setting, open: Call): Steps {
  const { settings, forgets } = setting
  const { orders, left } = world
  const isKnown = (orders[open.of]?.received ?? 0) > 0
  const end = (reply: Reply | null, isReceived: boolean, cost: number) => (): World => {
    const answered = reply === null ? null : { ...open, reply }
    return {
      ...world,
      left: left - cost,
      ...(world.call === open ? { call: answered } : { late: answered }),
      orders: isReceived
        ? change(orders, open.of, ({ received }) => ({ received: received + 1, isOpen: true }))
        : [...orders],
    }
  }
  const codes = setting.hasOddCodes ? ['33', '24', '9'] : ['33', '24']
  if (isKnown && settings.GATEWAY_REFUND_DEDUPES && !forgets) {
    yield { name: 'the gateway has it already', next: end(refuse('1'), false, 0) }
  } else {
    yield { name: 'the gateway accepts', next: end(ACCEPTED, true, 0) }
    for (const code of codes) {
      yield { name: `the gateway refuses with ${code}`, next: end(refuse(code), false, 0) }
      if (left > 0)
        yield {
          name: `the gateway does it and answers ${code} (fault)`,
          next: end(refuse(code), true, 1),
        }
    }
    if (left > 0) {
      yield { name: 'the gateway does it, without an answer (fault)', next: end(SILENT, true, 1) }
      yield { name: 'the process dies, the bytes have left (fault)', next: end(null, true, 1) }
    }
  }
  if (left === 0) return
  yield { name: 'nothing arrives, without an answer (fault)', next: end(SILENT, false, 1) }
  yield {
    name: 'no byte is written (fault)',
    next: end({ kind: 'unavailable', reason: '' }, false, 1),
  }
  yield { name: 'the process dies before (fault)', next: end(null, false, 1) }
}

function show(world: World, setting: Setting, of: number, by: number): World {
  const shown = String(readLedger(world, setting))
  const earlier = [...new Set([...world.earlier, shown])].sort()
  return {
    ...world,
    earlier,
    orders: change(world.orders, of, (one) => ({ shown: one.shown + by })),
  }
}
