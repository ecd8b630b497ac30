import { expect, it } from 'vitest'
import { measureNotifications, reportAttack, startFlood } from '../../support/attack.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const MEASURED = 800
const PARALLEL = 150

it('150 parallel readers of what needs no key do not make notifications wait', async () => {
  const service = await startServiceProcess({
    ...settingsFor(database.url, 'http://127.0.0.1:9'),
    ROLE: 'web',
  })
  await measureNotifications(service.url, MEASURED / 2)
  const idle = await measureNotifications(service.url, MEASURED)
  for (const path of ['/metrics', '/readyz', '/healthz']) {
    const flood = { connections: PARALLEL, localAddress: '127.0.0.9' }
    const started = performance.now()
    const stop = await startFlood({ url: service.url, paths: [path], ...flood })
    const attacked = await measureNotifications(service.url, MEASURED)
    const answers = await stop()
    reportAttack(`${PARALLEL} parallel ${path} (${answers} answers)`, idle, attacked)
    expect(attacked.refused).toBe(0)
    // 200 a second, and what is refused after it was held for half a second or longer.
    const seconds = (performance.now() - started) / 1_000
    expect([path, answers]).toEqual([
      path,
      expect.toSatisfy((count: number) => count <= PARALLEL + seconds * (200 + 2 * PARALLEL)),
    ])
  }
}, 120_000)
