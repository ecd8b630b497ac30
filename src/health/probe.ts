import { ConfigError } from '../config/environment.ts'
import { askHealth, HEALTH_PATHS, readHealthUrl } from './ask-health.ts'

/**
 * The health check of the image: `node dist/health/probe.js [/readyz|/healthz]`. The exit code is 0 if the service in
 * the same container answers 200, 1 if not, 2 for wrong usage.
 */
async function main(args: readonly string[]): Promise<void> {
  const [asked = '/readyz', ...others] = args
  const path = HEALTH_PATHS.find((one) => one === asked)
  if (!path || others.length > 0) {
    process.stderr.write(`usage: probe.js [${HEALTH_PATHS.join('|')}]\n`)
    process.exitCode = 2
    return
  }
  const { healthy, line } = await askHealth(readHealthUrl(), path)
  process.stdout.write(`${line}\n`)
  if (!healthy) process.exitCode = 1
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const lines = error instanceof ConfigError ? error.lines : [String(error)]
  process.stderr.write(`The health check cannot run:\n${lines.map((one) => `  ${one}\n`).join('')}`)
  process.exitCode = 1
})
