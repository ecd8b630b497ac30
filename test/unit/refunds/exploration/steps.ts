import type { Step } from './explore.ts'
import { ask, change, fault, listGateway } from './gateway.ts'
import { listPeople } from './people.ts'
import { request } from './request.ts'
import { answer, hear, mayHear, pass } from './service.ts'
import { tick } from './time.ts'
import { isPortal, readLedger, type Setting, type World } from './world.ts'

type Steps = Generator<Step<World>>

/** Every step that may be taken in a state: of the service, of the gateway, of people, and of the clock. */
export function* listSteps(world: World, setting: Setting): Steps {
  yield* listService(world, setting)
  yield* listGateway(world, setting)
  yield* listLostCommits(world, setting)
  if (setting.hasPeople || setting.hasHolds) yield* listPeople(world, setting)
  const later = tick(world)
  if (later) yield { name: 'time passes', next: () => later }
}

export function* listService(world: World, setting: Setting): Steps {
  const { rows, query, call, late, inbox, orders } = world
  for (const of of rows.keys()) {
    if (mayBeRequested(world, setting, of)) {
      yield { name: `request ${of}`, next: () => request(world, setting, of) }
    }
  }
  if (!query && !call && rows.some((row) => row !== null)) {
    yield { name: 'ask', next: () => ask(world, readLedger(world, setting)) }
  }
  if (query && !call) yield { name: `answer ${query.shown}`, next: () => answer(world, setting) }
  if (inbox.length > 0 && !call) yield { name: 'no answer', next: () => pass(world, setting) }
  if (call?.reply) yield { name: 'reply', next: () => hear(world, setting, call, false) }
  if (late?.reply && mayHear(world, late)) {
    yield { name: 'late reply', next: () => hear(world, setting, late, true) }
  }
  for (const [of, { ipns }] of orders.entries()) {
    for (const code of ipns) {
      yield { name: `notify ${of} of ${code}`, next: () => deliver(world, of, code) }
    }
  }
}

/** Refunds of one amount are requested in their order: another order is the same but for their names. */
function mayBeRequested({ rows, lost }: World, setting: Setting, of: number): boolean {
  const { amounts } = setting
  if (rows[of] !== null || isPortal(of, setting)) return false
  return rows.every(
    (row, one) => one >= of || amounts[one] !== amounts[of] || row !== null || lost.includes(one),
  )
}

/** The commit of an answer may be lost in a failover once the bytes of its attempt have left. */
function* listLostCommits(world: World, setting: Setting): Steps {
  const { query, call } = world
  if (!setting.losesAttempts || !query || call) return
  yield* fault(world, 'answer, and its commit is lost once bytes have left', (w) => {
    const { call: begun } = answer(w, setting)
    if (!begun) return world
    const lost = [...w.lost, begun.of].sort()
    return { ...w, query: null, news: w.news.map(() => ''), call: { ...begun, isLost: true }, lost }
  })
}

function deliver(world: World, of: number, code: string): World {
  const orders = change(world.orders, of, ({ ipns }) => ({
    ipns: ipns.filter((one) => one !== code),
  }))
  const inbox = [...world.inbox, { of, code, isNews: world.query !== null }]
  // Of two refunds either may be handled first: they do not read each other's notifications.
  return { ...world, orders, inbox: inbox.toSorted((a, b) => a.of - b.of) }
}
