import { expect, it, onTestFinished, vi } from 'vitest'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { CARDS } from '../../support/cards.ts'
import { startTestService } from '../../support/service.ts'
import { useStarted, useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()
const settings = { ROLE: 'web', GATEWAY_ACCESS_TOKEN: 'T1' }
const service = useStarted(
  () => startTestService(database, 'http://127.0.0.1:1', { settings }),
  (started) => started.stop(),
)

it('a failed read is logged with the id of its API request', async () => {
  const logged = vi.spyOn(service.ctx.log, 'info')
  const headers = { 'x-request-id': 'asked-1' }
  await fetch(`${service.url}${CARDS}/VC-1`, withKey(undefined, headers))
  const line = [expect.objectContaining({ requestId: 'asked-1' }), 'cards could not be read']
  expect(logged.mock.calls).toContainEqual(line)
})

it('an unexpected error is returned and logged without the card number of its path', async () => {
  const broken = vi.spyOn(service.ctx.gateway, 'readCards')
  broken.mockRejectedValue(new Error('out of order'))
  onTestFinished(() => void broken.mockRestore())
  const logged = vi.spyOn(service.ctx.log, 'error')
  const response = await fetch(`${service.url}${CARDS}/4111111111111111`, withKey())
  const problem = await expectProblem(response, 500, 'internal_error')
  expect(JSON.stringify(problem)).not.toContain('411111')
  const path = `${CARDS}/411111******1111`
  expect(logged).toHaveBeenCalledWith(expect.objectContaining({ path }), expect.any(String))
})

it('no error is written to the log with a card number, no object with a token', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => void lines.push(line) })
  log.error({ err: new Error('card 4111111111111111') }, 'first')
  log.error({ err: '4111111111111111', token: { accessToken: 'hunter2' } }, 'second')
  log.error({ clientSecret: 'hunter2' }, 'third')
  expect(lines).toHaveLength(3)
  expect(lines.join()).toContain('411111******1111')
  expect(lines.join()).not.toMatch(/4111111|hunter2/)
})
