// Runs where `stripe-sync-engine` was installed: its own server's route, without its options.
import { createRequire } from 'node:module'
import fastify from 'fastify'

// Its module for `import` does not find its migrations (0.48.5: `__dirname is not defined`).
const { runMigrations, StripeSync } = createRequire(import.meta.url)('@supabase/stripe-sync-engine')
const { DATABASE_URL, STRIPE_WEBHOOK_SECRET, PORT } = process.env
// It reports a failure only here.
const logger = { info() {}, error: (error, message) => console.error(message, error) }
await runMigrations({ databaseUrl: DATABASE_URL, schema: 'stripe', logger })
const sync = new StripeSync({
  poolConfig: { connectionString: DATABASE_URL, max: 10, keepAlive: true },
  schema: 'stripe',
  stripeSecretKey: 'sk_test_bench',
  stripeWebhookSecret: STRIPE_WEBHOOK_SECRET,
  // Either would call Stripe for each event.
  autoExpandLists: false,
  backfillRelatedEntities: false,
})

const app = fastify()
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
  done(null, body),
)
app.post('/webhook', async (request) => {
  await sync.processWebhook(request.body, request.headers['stripe-signature'])
  return { received: true }
})
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log('ready')
