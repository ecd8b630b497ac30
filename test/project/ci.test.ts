import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../.ci/run', import.meta.url))

it('the whole script of the CI can be parsed: bash reads its last lines only when it gets there', async () => {
  await expect(promisify(execFile)('bash', ['-n', SCRIPT])).resolves.toMatchObject({ stderr: '' })
})
