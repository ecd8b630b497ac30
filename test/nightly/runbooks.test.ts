import { execFileSync } from 'node:child_process'
import { createWriteStream, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/client.ts'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { bundle } from '../support/bundle.ts'
import { isRoot, makeFolder } from '../support/embedded.ts'
import { ask } from '../support/postgres-server.ts'
import { startRefundRig } from '../support/refunds.ts'
import { waitUntil } from '../support/wait-until.ts'
import { ACCOUNT } from './failover/stage.ts'
import { startFlood } from './floods/victims.ts'
import { startInstallation } from './runbooks/installation.ts'
import { openMachine, programs, readLines, STOP, startServer } from './runbooks/shell.ts'

/** Plays a section of docs/operations.md, on a machine with Debian's programs of Postgres. */
const runbook = (name: string, play: () => Promise<void>, isAllowed = true) =>
  it.skipIf(!programs || !isAllowed)(name, play, 600_000)

runbook(
  'a primary is replaced by its standby by the lines of the page, and becomes the next standby: nothing is lost',
  async () => {
    const { url, shell: first } = await startServer()
    const { url: other, shell: second } = await openMachine()
    const hosts = [url, other].map((one) => new URL(one).host).join()
    const both = `postgres://postgres@${hosts}/postgres?target_session_attrs=primary`
    for (const { env } of [first, second]) env.DATABASE_URL = both

    const [setUp = ''] = await readLines('A standby, and failover')
    await second.play(setUp)
    const { untilServed, expectInOrder } = await startInstallation(first, both)
    await untilServed()
    await first.play(STOP)
    const [failOver = '', moveAside = ''] = await readLines('Failing over by hand')
    Object.assign(second.env, { ...first.env, ...second.env })
    const told = await second.play(failOver)
    expect(told).toMatch(/^ok +restore +the server of before/m)
    await untilServed()
    await first.play(moveAside + setUp)
    expect(await first.play('npm run -s cli -- doctor')).toMatch(/^ok +standby +.* 1 confirm them/m)
    await untilServed()
    await expectInOrder(other)
  },
)

runbook(
  'a database restored by the lines of the page to the moment before a mistake moves nothing twice',
  async () => {
    const { url, shell } = await startServer()
    await migrateDatabase(url)
    const [setUp = '', nightly = ''] = await readLines('Backups')
    const [restore = '', after = ''] = await readLines('Restoring to an earlier moment')
    await shell.play(setUp)
    await shell.play(nightly)

    const opened = openDatabase(url, 3)
    onTestFinished(() => opened.close())
    const unused = () => Promise.reject(new Error('the server is of the test alone'))
    const database = { ...opened, url, shutOut: unused, letIn: unused }
    const rig = await startRefundRig({ database })
    onTestFinished(() => rig.stop())
    const paid = await rig.pay({ amount: '100' })
    const [moment] = await ask<{ now: string }>(url, 'select now()::text as now')
    const { body } = await rig.refund(paid.id, { amount: '40' }, 'lost')
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'succeeded' })
    const lost = await rig.pay({ amount: '7' })

    shell.env.MOMENT = moment?.now ?? ''
    await shell.play(`BASE=$(ls -d $BACKUP/base-*)\n${restore}`)
    const readReady = async () => (await fetch(`${rig.service.url}/readyz`)).text()
    const saysSo = async () => (await readReady()).includes('cli -- restored')
    await waitUntil(saysSo, { what: '/readyz names the command' })
    const isKnown = async (id: string) => (await rig.api(`/v1/payments/${id}`)).status
    expect([await isKnown(paid.id), await isKnown(lost.id)]).toEqual([200, 404])

    // The order system repeats what it was promised, before anybody ran anything.
    expect((await rig.refund(paid.id, { amount: '40' }, 'lost')).body.id).toBe(body.id)
    // What differs is a finding.
    const told = await shell.play(after, [0, 1])
    expect(told).toMatch(/^1 transactions asked, .* 0 without an answer$/m)
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'needs_review' })
    expect(await rig.moved(paid.id)).toEqual(['40'])
  },
)

runbook(
  'the encryption key is changed by the lines of the page while everything goes on',
  async () => {
    const { url, shell } = await startServer()
    await shell.play('npm run -s cli -- migrate')
    const { restart, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    const old = shell.env.DATA_ENCRYPTION_KEY ?? ''
    const [change = '', after = ''] = await readLines('The encryption key')
    expect(await shell.play(change)).toMatch(/^ok +key .*opens what is stored/m)
    expect(shell.env.DATA_ENCRYPTION_KEY).not.toBe(old)
    await restart()
    await untilServed()
    const resealed = await shell.play(after)
    expect(resealed).toMatch(
      /^encrypted again: [1-9]\d* receivers, [1-9]\d* events.*; 0 unreadable$/m,
    )
    expect(resealed).toMatch(/^ok +key .*opens what is stored/m)
    await restart()
    await untilServed()
    await shell.play('npm run -s cli -- audit verify')
    const key = `DATA_ENCRYPTION_KEY=${old}`
    expect(await shell.play(`${key} node dist/main.js --check`, [1])).toMatch(/^FAIL +key /m)
    await expectInOrder()
  },
)

runbook(
  'the secret of the gateway is changed by the lines of the page: no refund is refused for it',
  async () => {
    const { url, shell } = await startServer()
    const installation = await startInstallation(shell, url, { waitsFor: 'held' })
    const { sandbox, restart, untilServed, expectInOrder } = installation
    await untilServed()
    const [hold = '', change = '', release = ''] = await readLines("The gateway's secret")
    await shell.play(hold)
    shell.env.NEW_SECRET = 'the-secret-that-the-gateway-issued'
    const merchant = sandbox.state.merchants.get(ACCOUNT.merchantCode)
    if (!merchant) throw new Error('the gateway does not know the account')
    const given = await shell.play('npm run -s cli -- probe', [0, 1])
    expect(given).toMatch(/^ok +signature /m)
    merchant.secret = shell.env.NEW_SECRET
    expect(await shell.play('npm run -s cli -- probe', [1])).toMatch(
      /^ERROR +signature .*GATEWAY_SECRET/m,
    )
    expect(await shell.play(change)).toMatch(/^ok +signature /m)
    await restart()
    await shell.play(release)
    await untilServed()
    await expectInOrder()
  },
)

runbook('an outage of the gateway is seen and ended by the lines of the page', async () => {
  const { url, shell } = await startServer()
  Object.assign(shell.env, { SYNC_MAX_ATTEMPTS: '3' })
  const installation = await startInstallation(shell, url)
  const { gateway, readReady, untilServed, expectInOrder } = installation
  await untilServed()
  const [during = '', after = ''] = await readLines('When the gateway does not answer')
  // Not the notifications: nobody but a person can tell a refund whose success was lost beside one without an answer.
  for (const command of ['QUERY_PT', 'REFUND'])
    await gateway.send('POST', '/faults', { command, kind: 'reset', probability: 1 })
  const isPaused = async () => (await readReady('worker')).includes('"paused"')
  await waitUntil(isPaused, { what: 'calls are paused', timeoutMs: 60_000 })
  const told = await shell.play(during, [1])
  expect(told).toMatch(/"paused":\[[^\]]*"query/)
  expect(told).toMatch(/^ERROR +query .*no answer to QUERY_PT .*GATEWAY_BASE_URL/m)
  await gateway.send('DELETE', '/faults')
  await shell.play(after)
  await untilServed()
  await expectInOrder()
})

const FLOODER = '127.0.0.9'

runbook(
  'a flood of forged notifications is found and shut out by the lines of the page, while genuine ones are taken',
  async () => {
    const { url, shell } = await startServer()
    const { apiUrl, restart, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    const end = await startFlood({
      url: apiUrl,
      path: '/ipn',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ svc_TransactionID: 'FORGED', svc_SecureHash: '0'.repeat(64) }),
      connections: 8,
      perS: 50,
      localAddress: FLOODER,
    })
    await untilServed()
    const [find = '', shutOut = ''] = await readLines('When a flood arrives')
    const found = await shell.play(find)
    expect(found).toMatch(/^ipn_received_total\{verdict="bad_signature"\} [1-9]/m)
    expect(found).toMatch(new RegExp(`^ +\\d+ "address":"${FLOODER}"$`, 'm'))
    shell.env.NETWORKS = '127.0.0.1/32'
    expect(await shell.play(shutOut)).toMatch(/^ok +settings /m)
    await restart()
    await untilServed()
    const answers = await end()
    console.info(`the flood was answered ${JSON.stringify(answers)}`)
    expect(answers[403]).toBeGreaterThan(20)
    expect(answers[200]).toBeUndefined()
    await expectInOrder()
  },
)

/** Writes into a file until its disk is full. */
async function fillDisk(file: string): Promise<void> {
  const bytes = function* () {
    for (;;) yield Buffer.alloc(4_096)
  }
  await expect(pipeline(Readable.from(bytes()), createWriteStream(file))).rejects.toThrow('ENOSPC')
}

// Only root may mount a disk of its own.
runbook(
  'a full disk is found and enlarged by the lines of the page, and nothing is lost',
  async () => {
    const disk = makeFolder()
    const mount = (...options: string[]) =>
      void execFileSync('mount', ['-t', 'tmpfs', ...options, 'tmpfs', disk])
    mount('-o', 'size=400m,mode=755')
    onTestFinished(() => void execFileSync('umount', [disk]))
    const { url, shell } = await startServer(disk)
    const { readReady, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    await fillDisk(join(disk, 'full'))
    const isFull = async () => (await readReady('web')).includes('the disk of the database is full')
    await waitUntil(isFull, { what: 'the disk is noticed', timeoutMs: 60_000 })
    const doctor = await shell.play('npm run -s cli -- doctor', [1])
    expect(doctor).toMatch(/^ERROR +disk .*the disk of the database is full/m)
    const [look = '', after = ''] = await readLines('When the disk of the database is full')
    expect(await shell.play(look)).toMatch(/100% /)
    // The operator enlarges it.
    mount('-o', 'remount,size=600m')
    expect(statfsSync(disk).bavail).toBeGreaterThan(0)
    await shell.play(after)
    await untilServed()
    await expectInOrder()
  },
  isRoot,
)

runbook(
  'a clock that is an hour ahead is found by the lines of the page, and moves nothing twice',
  async () => {
    const { url, shell } = await startServer()
    const { restart, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    const clock = bundle('test/nightly/chaos/shifted-clock.ts', makeFolder(), 'clock')
    Object.assign(shell.env, { CHAOS_CLOCK_SHIFT_MS: '3600000', NODE_OPTIONS: `--import ${clock}` })
    await restart()
    await untilServed()
    const [look = ''] = await readLines('When a clock is wrong')
    const [doctor = '', probe = ''] = look.trim().split('\n')
    const wrong =
      /^(ERROR|WARN) +clock .*machine is (3599|360[01])\.\d s ahead of the .*; synchronise/m
    expect(await shell.play(doctor, [1])).toMatch(wrong)
    expect(await shell.play(probe, [0, 1])).toMatch(wrong)
    // The operator mends it.
    delete shell.env.NODE_OPTIONS
    await restart()
    await untilServed()
    await shell.play(look)
    await expectInOrder()
  },
)
