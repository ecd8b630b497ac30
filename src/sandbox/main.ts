import { ConfigError, readSandboxConfig } from '../config.ts'
import { startSandbox } from './server.ts'

/** The sandbox gateway alone: `npm run sandbox`. */
async function main(): Promise<void> {
  const { options, ipnUrl } = readSandboxConfig()
  const sandbox = await startSandbox({ ...options, ipnUrl })
  const accounts = options.accounts.map(({ merchantCode }) => merchantCode).join(', ')
  process.stdout.write(
    [
      `Sandbox gateway   ${sandbox.url}   account ${accounts}`,
      `Notifications     ${ipnUrl}`,
      'Make a payment:',
      `  curl -H 'Content-Type: application/json' -d '{"payments":[{"amount":"150000","paymentMethod":"QR","status":"SUCCESS"}]}' ${sandbox.url}/sandbox/transactions`,
      '',
    ].join('\n'),
  )
  const stop = () => void sandbox.stop().then(() => process.exit(0))
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

main().catch((error: unknown) => {
  const lines = error instanceof ConfigError ? error.lines : [String(error)]
  process.stderr.write(
    `The sandbox gateway cannot start:\n${lines.map((line) => `  ${line}\n`).join('')}`,
  )
  process.exit(1)
})
