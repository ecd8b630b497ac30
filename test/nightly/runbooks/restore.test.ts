import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { ask } from '../../support/postgres-server.ts'
import { startRefundRig } from '../../support/refunds.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { programs, readLines, startServer } from './shell.ts'

it.skipIf(!programs)(
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
  180_000,
)
