import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../src/db/embedded/start.ts'
import { ACCOUNT, measureAck, measureReadable } from './intake.ts'
import { findPort, startProcess, startProcessor } from './processes.ts'
import { measureRequest, measureSending } from './refunds.ts'
import { writeReport } from './report.ts'
import { measureMemory, measureStart } from './start.ts'

/** A gateway across the town: what its calls take in the measure of sending (ms). */
const GATEWAY_MS = 20

/** Everything in one run on one machine, each figure beside its baseline. */
const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
const database = await startEmbeddedPostgres({ dataDir: folder })
try {
  const start = await measureStart()
  const gatewayPort = await findPort()
  const gateway = await startProcess(
    'test/bench/bare-gateway.ts',
    { PORT: String(gatewayPort) },
    () => true,
  )
  const gatewayUrl = `http://127.0.0.1:${gatewayPort}`
  const service = await startProcessor(database.url, gatewayUrl, ACCOUNT)
  const idle = await measureMemory('memory of the idle service', service, '')
  const naivePort = await findPort()
  const naive = await startProcess(
    'test/bench/naive-intake.ts',
    {
      PORT: String(naivePort),
      DATABASE_URL: database.url,
      GATEWAY_BASE_URL: gatewayUrl,
      GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode,
      GATEWAY_SECRET: ACCOUNT.secret,
      DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
    },
    (line) => line === 'ready',
  )
  const web = await startProcessor(database.url, gatewayUrl, ACCOUNT, 'web')
  const naiveUrl = `http://127.0.0.1:${naivePort}`
  const acks = [
    await measureAck('serving only', web.url, naiveUrl),
    await measureAck('with its sync at work', service.url, naiveUrl),
  ]
  await naive.stop()
  const readable = await measureReadable(service.url)
  const requests = await measureRequest(service, web, database.url)
  const slowPort = await findPort()
  const slow = await startProcess(
    'test/bench/bare-gateway.ts',
    { PORT: String(slowPort), DELAY_MS: String(GATEWAY_MS) },
    () => true,
  )
  const slowUrl = `http://127.0.0.1:${slowPort}`
  const other = await startProcessor(database.url, slowUrl, ACCOUNT)
  const sending = await measureSending(other, web, slowUrl, database.url, GATEWAY_MS)
  await writeReport([...acks, readable, ...requests, sending, ...start, idle], 'bench-results')
  await other.stop()
  await web.stop()
  await slow.stop()
  await gateway.stop()
} finally {
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}
