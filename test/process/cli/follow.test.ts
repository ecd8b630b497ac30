import { expect, inject, it } from 'vitest'
import { runCli } from '../../support/cli.ts'
import { findEnd, readAllEvents } from '../../support/feed.ts'
import { runNode } from '../../support/process.ts'
import { makeTransaction, notifyOf } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig()
const environment = () => ({
  DATABASE_URL: rig.database.url,
  DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
})
const start = (...args: string[]) =>
  runNode([inject('programs').cli, 'follow', ...args], environment())

async function pay(transactionId: string): Promise<void> {
  await makeTransaction(rig, transactionId)
  await notifyOf(rig, transactionId)
}

it('prints events as they happen until Ctrl-C, and then where to go on', async () => {
  const began = await findEnd(rig)
  const { child, ended, output } = start('--after', began)
  await pay('T-1')
  await waitUntil(() => output().out.includes('transaction.final'), {
    what: 'the event is printed',
  })
  child.kill('SIGINT')
  expect(await ended).toBe(0)
  const { out, err } = output()
  const events = await readAllEvents(rig, began)
  expect(
    out
      .trim()
      .split('\n')
      .map((line) => line.split(/ +/)[0]),
  ).toEqual(events.map(({ id }) => id))
  expect(out).toMatch(/ {2}payment\.created {2}UFLIYL {2}T-1 {2}SUCCESS 10/)
  const cursor = /^go on with: .* follow --after (\d+)\n$/.exec(err)?.[1]
  expect(cursor).toBe(events.at(-1)?.id)
  // From there on, of some types, as the API has them.
  const more = start('--after', cursor ?? '', '--types', 'transaction.paid', '--json')
  await pay('T-2')
  await waitUntil(() => more.output().out.endsWith('\n'), { what: 'the event is printed' })
  more.child.kill('SIGTERM')
  expect(await more.ended).toBe(0)
  const wanted = (await readAllEvents(rig, cursor)).filter(
    ({ type }) => type === 'transaction.paid',
  )
  expect(
    more
      .output()
      .out.trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(wanted)
})

it.each([
  ['a cursor', ['--after', 'now'], 'It is not a cursor of this feed'],
  ['a cursor of the future', ['--after', '8999999999999999'], 'is beyond the newest event'],
])('exits with 2 and the right spelling for %s', async (_, args, words) => {
  const { code, err } = await runCli(['follow', ...args], environment())
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(words) })
})
