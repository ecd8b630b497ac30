import postgres from 'postgres'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { classifyOutage, describePause } from '../../../../src/health/watch-outages.ts'
import { TimeoutError } from '../../../../src/platform/concurrency/timing.ts'
import { describeOutage } from '../../../../src/platform/postgres/describe-outage.ts'
import { CONNECTIONS_BUSY, UnreplicatedError } from '../../../../src/platform/postgres/errors.ts'
import { createLog } from '../../../../src/platform/telemetry/log.ts'
import { noteOutage, openOutageLog } from '../../../../src/platform/telemetry/outage-log.ts'

const Line = z.looseObject({ msg: z.string(), failed: z.record(z.string(), z.number()).optional() })

/** A log with outages whose clock stands still until it is moved. */
function prepare() {
  const lines: z.infer<typeof Line>[] = []
  const log = createLog('info', { write: (line) => void lines.push(Line.parse(JSON.parse(line))) })
  const clock = { ms: 1_000_000 }
  const outages = openOutageLog(log, describeOutage, () => clock.ms)
  return { log, lines, clock, outages }
}

const refused = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

const failWith = (code: string) =>
  Object.assign(new postgres.PostgresError('refused'), { code, severity: 'ERROR' })

it('an outage is one line when it begins, one a minute with what has failed, and one when it is over', () => {
  const { log, lines, clock, outages } = prepare()
  for (const work of ['requests', 'requests', 'rounds']) {
    expect(noteOutage(log, refused(), work)).toBe(true)
  }
  clock.ms += 59_999
  outages.remind()
  expect(lines.map(({ msg }) => msg)).toEqual([
    expect.stringMatching(
      /^the database is unreachable: requests get 503 .*; look at .*DATABASE_URL$/,
    ),
  ])
  clock.ms += 1
  outages.remind()
  outages.remind()
  expect(lines).toHaveLength(2)
  expect(lines[1]?.msg).toMatch(/^the database is unreachable, for 60 s now: /)
  expect(lines[1]?.failed).toEqual({ requests: 2, rounds: 1 })
  clock.ms += 3_000
  outages.end('database')
  outages.end('database')
  outages.remind()
  expect(lines).toHaveLength(3)
  expect(lines[2]?.msg).toMatch(/^back after 63 s: "the database is unreachable" is over, /)
  expect(outages.list()).toEqual([])
})

it('the lines of an outage have the code of its newest sign', () => {
  const { log, lines, outages } = prepare()
  for (const code of ['CONNECTION_CLOSED', 'ECONNREFUSED']) {
    noteOutage(log, Object.assign(new Error('away'), { code }), 'requests')
  }
  outages.end('database')
  expect(lines).toMatchObject([{ code: 'CONNECTION_CLOSED' }, { code: 'ECONNREFUSED' }])
})

it('an outage under which nothing was counted, as of the gateway, has no counts in its lines', () => {
  const { lines, outages } = prepare()
  const look = { meanwhile: 'calls wait', look: 'the network' }
  outages.note({ name: 'gateway query A', what: 'the gateway does not answer', ...look })
  outages.end('gateway query A')
  expect(lines.map((line) => 'failed' in line)).toEqual([false, false])
})

it('a database that is away is no backlog as well: it is one line, whichever is noticed first', () => {
  for (const errors of [
    [refused(), new TimeoutError('late')],
    [new TimeoutError('late'), refused(), new TimeoutError('late')],
  ]) {
    const { log, lines, clock } = prepare()
    const outages = openOutageLog(
      log,
      (error) => classifyOutage(error, outages.list()),
      () => clock.ms,
    )
    for (const error of errors) {
      expect(noteOutage(log, error, 'probes')).toBe(true)
      clock.ms += 1_000
    }
    expect(outages.list().map(({ name }) => name)).toEqual(['database'])
    outages.end('database')
    const [last] = lines.slice(-1)
    // What failed before the cause was known is part of it.
    expect(last?.failed).toEqual({ probes: errors.length })
    expect(last?.msg).toContain(`back after ${errors.length} s: "the database is unreachable"`)
    expect(lines.filter(({ msg }) => msg.startsWith('back'))).toHaveLength(1)
  }
})

it('what is late while a disk is full is counted, and no sign that it still is', () => {
  const { log, lines, clock } = prepare()
  const outages = openOutageLog(
    log,
    (error) => classifyOutage(error, outages.list()),
    () => clock.ms,
  )
  const busy = Object.assign(new Error('no connection'), { code: CONNECTIONS_BUSY })
  const quietMs = [failWith('53100'), new TimeoutError('late'), busy, failWith('53100')].map(
    (error) => {
      clock.ms += 2_000
      noteOutage(log, error, 'notifications')
      return outages.list().map((one) => [one.name, one.quietMs])
    },
  )
  expect(quietMs).toEqual([[['disk', 0]], [['disk', 2_000]], [['disk', 4_000]], [['disk', 0]]])
  outages.end('disk')
  expect(lines.at(-1)?.failed).toEqual({ notifications: 4 })
})

it('a server that stops because its disk is full is one outage: unreachable while it is, and said once a minute', () => {
  const { log, lines, clock } = prepare()
  const outages = openOutageLog(
    log,
    (error) => classifyOutage(error, outages.list()),
    () => clock.ms,
  )
  // It stops, is started with its disk still full, and stops again.
  const signs = [failWith('53100'), refused(), failWith('53100'), refused()]
  const names = signs.map((error) => {
    noteOutage(log, error, 'probes')
    clock.ms += 15_000
    return outages.list().map(({ name }) => name)
  })
  expect(names).toEqual([['disk'], ['database'], ['disk'], ['database']])
  const unreachable = 'the database is unreachable, after its disk was full'
  expect(lines.map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^the disk of the database is full: .*; reads are answered; /),
    expect.stringContaining(`${unreachable}: requests get 503`),
  ])
  clock.ms += 15_000
  outages.remind()
  outages.end('database')
  outages.end('disk')
  expect(lines.slice(2)).toMatchObject([
    { msg: expect.stringContaining(`${unreachable}, for 75 s now: `) },
    { msg: expect.stringContaining(`back after 75 s: "${unreachable}"`), failed: { probes: 4 } },
  ])
})

it('a server whose connections all wait for a lost standby is behind, and never said to be unreachable', () => {
  const { log, lines, clock } = prepare()
  const outages = openOutageLog(
    log,
    (error) => classifyOutage(error, outages.list()),
    () => clock.ms,
  )
  const busy = Object.assign(new Error('no connection'), { code: CONNECTIONS_BUSY })
  for (const error of [busy, new UnreplicatedError('lost'), busy]) {
    expect(noteOutage(log, error, 'requests')).toBe(true)
  }
  outages.end('standby')
  expect(outages.list()).toEqual([])
  expect(lines.map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^the database does not keep up: .* get 503/),
    expect.stringMatching(/^no standby of the database confirms commits: /),
    expect.stringMatching(/after 0 s/),
  ])
  expect(lines[2]?.failed).toEqual({ requests: 3 })
})

it.each([
  [
    'a full disk',
    failWith('53100'),
    /^the disk of the database is full: what writes is refused: .*; reads are answered; look at /,
  ],
  [
    'slots that are taken',
    failWith('53300'),
    /^the database has no connection left: .*DATABASE_POOL/,
  ],
  ['a server without writes', failWith('25006'), /^no server of the database accepts writes: /],
  [
    'a lost standby',
    new UnreplicatedError('lost'),
    /^no standby of the database confirms commits: /,
  ],
  [
    'a connection that was accepted and closed',
    Object.assign(new Error('closed'), { code: 'CONNECTION_CLOSED' }),
    /^the database is unreachable: .*; look at .* a proxy or pooler /,
  ],
  ['a wrapped error', new Error('query', { cause: refused() }), /^the database is unreachable: /],
] as const)('%s is a condition of its own, which says what to look at', (_, error, expected) => {
  const { log, lines } = prepare()
  expect(noteOutage(log, error, 'requests')).toBe(true)
  expect(lines.map(({ msg }) => msg)).toEqual([expect.stringMatching(expected)])
  expect(lines[0]?.msg).toContain('; look at ')
})

it.each([
  ['query', /notifications are stored, payments keep their state, and no refund is sent$/],
  ['refund', /notifications are stored, and no refund is sent$/],
  ['cards', /card reads get 503$/],
] as const)('the outage of paused calls (%s) says what waits for them', (operation, expected) => {
  expect(describePause('SHOP1', operation).meanwhile).toMatch(expected)
})

it('any other error is left to the caller, as is every error of a log without outages', () => {
  const { log, lines } = prepare()
  expect(noteOutage(log, new TypeError('a bug'), 'requests')).toBe(false)
  expect(noteOutage(log, failWith('23505'), 'requests')).toBe(false)
  expect(noteOutage(createLog('silent'), refused(), 'requests')).toBe(false)
  expect(lines).toEqual([])
})

it('an error from outside the process is logged without its stack, a bug with it', () => {
  const { log, lines } = prepare()
  log.error({ err: refused() }, 'one')
  log.error({ err: new TypeError('a bug') }, 'other')
  expect(lines[0]).toMatchObject({ err: { code: 'ECONNREFUSED' } })
  expect(lines[0]).not.toHaveProperty('err.stack')
  expect(lines[1]).toHaveProperty('err.stack')
})
