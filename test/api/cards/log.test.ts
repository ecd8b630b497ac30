import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, vi } from 'vitest'
import { expectProblem } from '../../support/api.ts'
import { CARDS } from '../../support/cards.ts'
import { KEY, startTestService } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

it('an unexpected error is returned and logged without the card number of its path', async () => {
  const service = await startTestService(database, 'http://127.0.0.1:1', {
    settings: { ROLE: 'web', GATEWAY_ACCESS_TOKEN: 'T1' },
  })
  try {
    service.ctx.gateway.readCards = () => Promise.reject(new Error('out of order'))
    const logged = vi.spyOn(service.ctx.log, 'error')
    const response = await fetch(`${service.url}${CARDS}/4111111111111111`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
    const problem = await expectProblem(response, 500, 'internal_error')
    expect(JSON.stringify(problem)).not.toContain('411111')
    expect(logged).toHaveBeenCalledWith(
      expect.objectContaining({ path: `${CARDS}/411111******1111` }),
      expect.any(String),
    )
  } finally {
    await service.stop()
  }
})

it('a failed read is logged with the id of its API request', async () => {
  const service = await startTestService(database, 'http://127.0.0.1:1', {
    settings: { ROLE: 'web', GATEWAY_ACCESS_TOKEN: 'T1' },
  })
  try {
    const logged = vi.spyOn(service.ctx.log, 'info')
    const headers = { authorization: `Bearer ${KEY}`, 'x-request-id': 'asked-1' }
    await fetch(`${service.url}${CARDS}/VC-1`, { headers })
    const line = [expect.objectContaining({ requestId: 'asked-1' }), 'cards could not be read']
    expect(logged.mock.calls).toContainEqual(line)
  } finally {
    await service.stop()
  }
})

it('no error is written to the log with a card number, no object with a token', async () => {
  const program = `
    import { createLog } from './src/platform/telemetry/log.ts'
    const log = createLog('info')
    log.error({ err: new Error('card 4111111111111111') }, 'first')
    log.error({ err: '4111111111111111', token: { accessToken: 'hunter2' } }, 'second')
    log.error({ clientSecret: 'hunter2' }, 'third')`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program],
    { cwd: fileURLToPath(new URL('../../..', import.meta.url)) },
  )
  expect(stdout.trim().split('\n')).toHaveLength(3)
  expect(stdout).toContain('411111******1111')
  expect(stdout).not.toMatch(/4111111|hunter2/)
})
