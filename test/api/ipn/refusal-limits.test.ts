import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createRefusalLimits, type Refused } from '../../../src/ipn/refusal-limits.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

/** A refused notification of a network, at a time that the test sets. */
function start() {
  const clock = { ms: 0 }
  const limits = createRefusalLimits(() => clock.ms)
  const refuse = (network: string, tookMs: number, more: Partial<Refused> = {}) =>
    limits.charge(network, { isBad: false, bytes: 0, tookMs, ...more })
  return { clock, limits, refuse }
}

describe('the CPU time of refused notifications', () => {
  it('is 0.2 s of a network at once, and a tenth of the time after that', () => {
    const { clock, limits, refuse } = start()
    for (let n = 0; n < 180; n += 1) refuse('a', 1)
    expect(limits.measureWait('a')).toBe(0)
    for (let n = 0; n < 5; n += 1) refuse('a', 1)
    expect(limits.measureWait('a')).toBeGreaterThan(0)
    clock.ms += limits.measureWait('a')
    expect(limits.measureWait('a')).toBe(0)
    refuse('a', 4.9)
    clock.ms += 39
    expect(limits.measureWait('a')).toBeGreaterThan(0)
    clock.ms += 11
    expect(limits.measureWait('a')).toBe(0)
  })

  it('of one notification is some 5 ms: a pause of the process is not charged', () => {
    const { limits, refuse } = start()
    refuse('a', 3_000)
    expect(limits.measureWait('a')).toBe(0)
  })

  it('of one network keeps no other waiting, however many have used up theirs', () => {
    const { limits, refuse } = start()
    for (let n = 0; n < 500; n += 1) {
      for (let of = 0; of < 50; of += 1) refuse(`n${n}`, 5)
    }
    expect(limits.measureWait('n7')).toBeGreaterThan(0)
    expect(limits.measureWait('gateway')).toBe(0)
  })

  it('is charged for the bytes that were read: of 62 KB with 5,300 members few hundred are read at once', () => {
    const { limits, refuse } = start()
    let read = 0
    while (limits.measureWait('a') === 0 && read < 2_000) {
      // Counting stops at the first member that is too many.
      refuse('a', 0.01, { bytes: 62_000, isBad: true })
      read += 1
    }
    expect(read).toBeGreaterThan(100)
    expect(read).toBeLessThan(300)
  })
})

it('so many malformed or wrongly signed ones of a network are told to wait, and no others', () => {
  const { clock, refuse } = start()
  const bad = (network = 'a') => refuse(network, 0, { isBad: true })
  for (let n = 0; n < 30; n += 1) expect(bad()).toBe(0)
  expect(bad()).toBe(2_000)
  expect([refuse('a', 0), bad('b')]).toEqual([0, 0])
  clock.ms += 2_000
  expect([bad(), bad()]).toEqual([0, 2_000])
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

  beforeEach(() => {
    // Nothing is given back meanwhile, however slow the machine is.
    vi.useFakeTimers({ toFake: ['performance'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is refused unread, to send again; its well-signed ones are stored in the end, and others at once', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 20; n += 1) statuses.push(...(await attack()))
    expect([...new Set(statuses)].toSorted()).toEqual([401, 429, 503])
    expect(statuses.filter((status) => status !== 503).length).toBeLessThan(300)
    const answer = await refuseHead()
    expect(answer).toMatch(/^HTTP\/1\.1 503 .*"respcode":1/s)
    const waitS = Number(/retry-after: (\d+)/i.exec(answer)?.[1])
    expect(waitS).toBeGreaterThan(0)
    expect(answer).toMatch(/connection: close/i)

    const other = { ...attacker, 'x-forwarded-for': '198.51.100.7' }
    const genuine = (id: string, headers: Record<string, string>) =>
      postIpn(rig.service.url, signIpn({ svc_TransactionID: id }), headers)
    expect((await genuine('T-OTHER', other)).status).toBe(200)
    expect((await genuine('T-SHARED', attacker)).status).toBe(503)
    vi.advanceTimersByTime(waitS * 1_000)
    expect((await genuine('T-SHARED', attacker)).status).toBe(200)
    expect(await rig.transaction('T-SHARED')).toMatchObject({ ipnCount: 1 })
    // The service is shared with other files: its pace for requests without a key was taken by the real clock.
    vi.useRealTimers()
    const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
    expect(metrics).toMatch(/^ipn_received_total\{verdict="throttled"\} [1-9]/m)
  })

  it('counts malformed bodies of 5,300 members as bad: after thirty they are 429, and others are served', async () => {
    const sender = { ...attacker, 'x-forwarded-for': '203.0.113.77' }
    const members = Array.from({ length: 5_300 }, (_, n) => [`svc_${n.toString(36)}`, 1])
    const many = JSON.stringify(Object.fromEntries(members))
    const statuses: number[] = []
    for (let n = 0; n < 4; n += 1) {
      const flood = Array.from({ length: 25 }, () => postIpn(rig.service.url, many, sender))
      for (const { status } of await Promise.all(flood)) statuses.push(status)
    }
    expect(statuses.toSorted()).toEqual([...Array(30).fill(400), ...Array(70).fill(429)])
    const genuine = signIpn({ svc_TransactionID: 'T-BESIDE' })
    const beside = { ...attacker, 'x-forwarded-for': '198.51.100.8' }
    expect((await postIpn(rig.service.url, genuine, beside)).status).toBe(200)
  })

  /** Sends the head of a request alone, and returns the answer: it is there before any byte of the body. */
  async function refuseHead(): Promise<string> {
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
    await closed
    return received
  }
})
