import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installNode } from './install-node.ts'

/**
 * Runs the tests on another version of Node, which npm's registry provides: `npm run test:node -- 22 [arguments of vitest]`.
 * The processes that tests start use it as well.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const [line, ...args] = process.argv.slice(2)
if (line === undefined) {
  console.error('Name a version: npm run test:node -- 22 [arguments of vitest]')
  process.exit(2)
}
try {
  const { executable, version } = await installNode(line)
  console.error(`Node ${version}`)
  const config = args.includes('--config') ? [] : ['--config', 'test/vitest.config.ts']
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...config, ...args]
  const PATH = dirname(executable) + delimiter + process.env.PATH
  const child = spawn(executable, vitest, {
    cwd: ROOT,
    env: { ...process.env, PATH },
    stdio: 'inherit',
  })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
