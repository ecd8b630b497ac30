import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createReadingBudget } from '../../../src/ipn/reading-budget.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const KNOWN_FOR_MS = 24 * 3_600_000

function startClock() {
  const clock = { ms: 0 }
  return { clock, budget: createReadingBudget(() => clock.ms) }
}

describe('the CPU time of refused notifications', () => {
  it('is 0.2 s of a network at once, and a tenth of the time after that', () => {
    const { clock, budget } = startClock()
    for (let n = 0; n < 199; n += 1) budget.charge('a', 1, false)
    expect(budget.measureWait('a')).toBe(0)
    budget.charge('a', 2, false)
    expect(budget.measureWait('a')).toBeGreaterThan(0)
    clock.ms += budget.measureWait('a')
    expect(budget.measureWait('a')).toBe(0)
    budget.charge('a', 5, false)
    clock.ms += 39
    expect(budget.measureWait('a')).toBeGreaterThan(0)
    clock.ms += 11
    expect(budget.measureWait('a')).toBe(0)
  })

  it('counts four times for a network that is throttled, and once if a well-signed one came from it', () => {
    const { budget } = startClock()
    budget.confirm('known')
    for (const network of ['unknown', 'known']) {
      for (let n = 0; n < 51; n += 1) budget.charge(network, 1, true)
    }
    expect(budget.measureWait('unknown')).toBeGreaterThan(0)
    expect(budget.measureWait('known')).toBe(0)
  })

  it('of one notification is at most 5 ms: a pause of the process is not charged', () => {
    const { budget } = startClock()
    budget.charge('a', 3_000, false)
    expect(budget.measureWait('a')).toBe(0)
  })
})

describe('the share of all networks', () => {
  /** A flood from so many networks that each stays within its own share. */
  function exhaust({ budget }: ReturnType<typeof startClock>) {
    for (let n = 0; n < 100; n += 1) budget.charge(`n${n}`, 5, false)
  }

  it('is 0.4 s at once: then a network that nobody knows has to wait', () => {
    const started = startClock()
    exhaust(started)
    expect(started.budget.measureWait('new')).toBeGreaterThan(0)
    started.clock.ms += 1_000
    expect(started.budget.measureWait('new')).toBe(0)
  })

  it('is not needed by a network that sent a well-signed one in the last day', () => {
    const started = startClock()
    const { budget, clock } = started
    budget.confirm('gateway')
    clock.ms += KNOWN_FOR_MS - 1
    exhaust(started)
    expect(budget.measureWait('gateway')).toBe(0)
    clock.ms += 1
    exhaust(started)
    expect(budget.measureWait('gateway')).toBeGreaterThan(0)
  })

  it('is needed by such a network as well, once it has used up half of its own', () => {
    const started = startClock()
    const { budget } = started
    budget.confirm('gateway')
    for (let n = 0; n < 25; n += 1) budget.charge('gateway', 5, false)
    expect(budget.measureWait('gateway')).toBe(0)
    exhaust(started)
    expect(budget.measureWait('gateway')).toBeGreaterThan(0)
  })

  it('remembers a limited number of networks, and strangers do not displace those that are known', () => {
    const { budget } = startClock()
    budget.confirm('gateway')
    for (let n = 0; n < 12_000; n += 1) budget.charge(`n${n}`, 0.001, false)
    expect(budget.size()).toBe(10_001)
    for (let n = 0; n < 100; n += 1) budget.charge(`m${n}`, 5, false)
    expect(budget.measureWait('gateway')).toBe(0)
  })
})

describe('a network whose share is used up', () => {
  const rig = useRig({ settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.1' } })
  const attacker = { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9' }
  const costly = JSON.stringify({
    ...signIpn({ svc_TransactionID: 'T-FORGED' }),
    ...Object.fromEntries(Array.from({ length: 58 }, (_, n) => [`svc_x${n}`, 'x'.repeat(1_000)])),
  })
  const attack = async () => {
    const flood = Array.from({ length: 25 }, () => postIpn(rig.service.url, costly, attacker))
    return (await Promise.all(flood)).map(({ status }) => status)
  }

  it('is refused unread, to send again; its well-signed ones are stored in the end, and others at once', async () => {
    const statuses: number[] = []
    await waitUntil(
      async () => {
        statuses.push(...(await attack()))
        return statuses.includes(503)
      },
      { what: 'a refusal', everyMs: 0 },
    )
    expect([...new Set(statuses)].toSorted()).toEqual([401, 429, 503])
    const answer = await refuseHead()
    expect(answer).toMatch(/^HTTP\/1\.1 503 .*"respcode":1/s)
    expect(answer).toMatch(/retry-after: \d/i)
    expect(answer).toMatch(/connection: close/i)

    const other = { ...attacker, 'x-forwarded-for': '198.51.100.7' }
    const genuine = (id: string, headers: Record<string, string>) =>
      postIpn(rig.service.url, signIpn({ svc_TransactionID: id }), headers)
    expect((await genuine('T-OTHER', other)).status).toBe(200)
    const answers: number[] = []
    await waitUntil(
      async () => {
        void attack()
        answers.push((await genuine('T-SHARED', attacker)).status)
        return answers.includes(200)
      },
      { what: 'the well-signed one', everyMs: 0 },
    )
    expect(answers).not.toContain(429)
    expect(await rig.transaction('T-SHARED')).toMatchObject({ ipnCount: 1 })
    const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
    expect(metrics).toMatch(/^ipn_received_total\{verdict="throttled"\} [1-9]/m)
  })

  /** Sends the head of a request alone, and returns the answer: it is there before any byte of the body. */
  async function refuseHead(): Promise<string> {
    for (;;) {
      await attack()
      const socket = connect(Number(new URL(rig.service.url).port), '127.0.0.1')
      let received = ''
      socket.setEncoding('utf8').on('data', (text) => {
        received += text
      })
      const closed = once(socket, 'close')
      socket.write(
        'POST /ipn HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n' +
          'X-Forwarded-For: 203.0.113.9\r\nContent-Length: 60000\r\n\r\n',
      )
      const patience = setTimeout(() => socket.destroy(), 200)
      await closed
      clearTimeout(patience)
      if (received !== '') return received
    }
  }
})
