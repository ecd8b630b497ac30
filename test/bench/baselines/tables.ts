import type postgres from 'postgres'

/**
 * The tables of the baselines. Their `transactions` have no index on `due_at`, which only the naive sync
 * needs: what is measured beside the intake is not to pay for it.
 */
export async function createBaselineTables(sql: postgres.Sql): Promise<void> {
  await sql.unsafe(`
    create table notifications (
      id bigint generated always as identity primary key,
      transaction_id text not null,
      body text not null,
      received_at timestamptz not null default now());
    create table transactions (
      transaction_id text primary key,
      order_id text,
      currency text,
      state text not null default 'pending',
      final boolean not null default false,
      paid_amount numeric not null default 0,
      due_at timestamptz,
      lease_id uuid,
      first_seen_at timestamptz not null default now());
    create table payments (
      payment_id text primary key,
      transaction_id text not null,
      status text not null,
      amount numeric not null,
      refunded_amount numeric not null,
      payment_method text not null);
    create index payments_transaction on payments (transaction_id);
    create table refunds (
      refund_id uuid primary key default gen_random_uuid(),
      payment_id text not null,
      amount numeric not null,
      idempotency_key text not null unique,
      status text not null default 'pending',
      due_at timestamptz,
      requested_at timestamptz not null default now())`)
}

/** The index of the naive sync's claim, while it is measured. */
export async function createDueIndex(sql: postgres.Sql): Promise<void> {
  await sql`create index transactions_due on transactions (due_at) where due_at is not null`
}

export async function dropDueIndex(sql: postgres.Sql): Promise<void> {
  await sql`drop index transactions_due`
}
