import { DEMO_ACCOUNT } from '../config/accounts.ts'
import { describeSandbox, readSandboxConfig } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { startSandbox } from './start.ts'
import { makeDefaultClient } from './tokens.ts'

async function main(): Promise<void> {
  const config = readSandboxConfig()
  const options = describeSandbox(config)
  const ipnUrl = config.SANDBOX_IPN_URL
  const sandbox = await startSandbox({ ...options, ipnUrl })
  process.stdout.write(`${formatBanner(sandbox.url, ipnUrl, options.accounts).join('\n')}\n`)
  let isStopping = false
  // Under npm a Ctrl-C arrives twice.
  const stop = () => {
    if (isStopping) return
    isStopping = true
    void sandbox.stop().then(() => process.exit(0))
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

type Account = ReturnType<typeof describeSandbox>['accounts'][number]

/** Shows no secrets but the public ones of the demo and of default clients. */
function formatBanner(url: string, ipnUrl: string, accounts: readonly Account[]): string[] {
  const json = "-H 'Content-Type: application/json'"
  const merchants = accounts.map(({ merchantCode, secret }) =>
    secret === DEMO_ACCOUNT.secret ? `${merchantCode}, secret ${secret}` : merchantCode,
  )
  const clients = accounts.map(({ merchantCode, token }) => {
    const known = makeDefaultClient(merchantCode)
    if (token?.kind === 'static') return `static token of ${merchantCode}`
    const { clientId, clientSecret } = token ?? known
    const isPublic = clientSecret === known.clientSecret
    return `client ${clientId}${isPublic ? `, secret ${clientSecret}` : ''}`
  })
  return [
    'Sandbox gateway: simulates the payment gateway, no money moves.',
    '',
    `Address         ${url}   (open it in a browser)`,
    `Notifications   ${ipnUrl}`,
    `Merchant        ${merchants.join('; ')}`,
    `Card tokens     ${clients.join('; ')}`,
    '',
    'Make a payment, which sends its notification:',
    `  curl ${json} -d '{"payments":[{"amount":"150000","paymentMethod":"QR","status":"SUCCESS"}]}' ${url}/sandbox/transactions`,
    'List the requests received and the notifications sent, with their outcome:',
    `  curl ${url}/sandbox/calls`,
    '',
    'Stop with Ctrl-C.',
  ]
}

main().catch((error: unknown) => {
  const lines = error instanceof ConfigError ? error.lines : [String(error)]
  process.stderr.write(
    `The sandbox gateway cannot start:\n${lines.map((line) => `  ${line}\n`).join('')}`,
  )
  process.exit(1)
})
