/* The parts of the plugin that know nothing of Slurm, under the sanitizers: topolane.conf, the files of links, and the
 * jobs in the engine's state, against a model of them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "holders.h"
#include "links_file.h"
#include "links_out.h"
#include "record.h"
#include "waiting.h"
#include "whole_file.h"

#define CHECK(what)                                                                                                 \
    do {                                                                                                            \
        if (!(what)) {                                                                                              \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what);                                        \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

static char *read_config(Config *config, const char *text)
{
    return config_read(config, "topolane.conf", text, strlen(text));
}

/* Prints what the plugin publishes of a topolane.conf on standard input. */
static void print_config(void)
{
    static char text[1 << 20];
    Config config;
    char *why = config_read(&config, "topolane.conf", text, fread(text, 1, sizeof text - 1, stdin));
    config_print(stdout, &config);
    if (why)
        printf("why %s\n", why);
    free(why);
    config_free(&config);
}

static const char *policy_of(const Config *config, const char *partition, const char *qos, const char *account)
{
    return config_rule(config, partition, qos, account)->policy->name;
}

static void test_config(void)
{
    Config config;
    CHECK(!read_config(&config,
                       "# comment\nEngine=/e.so Machine=m.toml\n\nCallTime=500 # us\n"
                       "Partition=a,b QOS=high Policy=dedicated MinBandwidth=0.5\nPartition=a Policy=isolated\n"
                       "account=physics policy=slurm-tree\r\nOutside=share"));
    CHECK(config.call_nanoseconds == 500000 && config.outside_shares && config.rule_count == 3);
    CHECK(!strcmp(policy_of(&config, "b", "high", NULL), "dedicated"));
    CHECK(!strcmp(policy_of(&config, "a", "low", NULL), "isolated"));
    CHECK(!strcmp(policy_of(&config, "b", NULL, "Physics"), "slurm-tree"));
    CHECK(!strcmp(policy_of(&config, "b", NULL, "physic"), "stock"));
    CHECK(!strcmp(policy_of(&config, NULL, NULL, NULL), "stock"));
    CHECK(config_rule(&config, "b", "high", NULL)->line == 5 && config_rule(&config, "a", "low", NULL)->line == 6);
    CHECK(config_rule(&config, "c", NULL, NULL)->line == RULE_OTHERWISE);
    config_free(&config);
}

/* Whether an option is refused with a sentence that contains another one. */
static bool option_refused(const char *text, const char *sentence)
{
    Option option;
    char *why = option_read(&option, text);
    bool is_as_said = why && strstr(why, sentence) && !option.policy && !option.shares_links;
    if (!is_as_said)
        fprintf(stderr, "%s: %s\n", text, why ? why : "taken");
    free(why);
    return is_as_said;
}

static Terms terms_of(const Config *config, const char *partition, const char *text)
{
    Option option;
    char *why = option_read(&option, text);
    CHECK(!why);
    return config_terms(config, config_rule(config, partition, NULL, NULL), &option);
}

/* What a job asks for itself counts as far as topolane.conf lets jobs ask for it; the rest is that of its rule. */
static void test_options(void)
{
    CHECK(option_refused("", "names nothing"));
    CHECK(option_refused("best", "there is no policy 'best'"));
    CHECK(option_refused("mine:Policy", "is a policy in Python"));
    CHECK(option_refused("isolated,dedicated", "'dedicated' is a second policy"));
    char longest[MOST_OPTION + 2];
    memset(longest, 'x', sizeof longest);
    longest[MOST_OPTION + 1] = '\0';
    CHECK(option_refused(longest, "is longer than 200 characters") && option_refused(longest + 1, "there is no policy"));
    CHECK(option_refused("dedicated,min-bandwidth=2", "does not give a number from 0.01 to 1"));
    CHECK(option_refused("isolated,min-bandwidth=0.5", "min-bandwidth is for the policy dedicated"));
    Config config;
    CHECK(!read_config(&config,
                       "Engine=/e JobsMay=dedicated,min-bandwidth\nPartition=a Policy=isolated\n"
                       "Partition=b Policy=dedicated MinBandwidth=0.7 Outside=share\nPartition=c Policy=slurm-tree Outside=share\n"));
    Terms terms = config_terms(&config, config_rule(&config, "b", NULL, NULL), NULL);
    CHECK(!strcmp(terms.policy->name, "dedicated") && terms.min_bandwidth == 0.7 && !terms.was_refused);
    CHECK(terms.shares_links && !config_terms(&config, config_rule(&config, "z", NULL, NULL), NULL).shares_links);
    CHECK(config_terms(&config, config_rule(&config, "c", NULL, NULL), NULL).shares_links);
    terms = terms_of(&config, "a", "dedicated,min-bandwidth=0.5");
    CHECK(!strcmp(terms.policy->name, "dedicated") && terms.min_bandwidth == 0.5 && !terms.was_refused);
    terms = terms_of(&config, "b", "min-bandwidth=0.25");
    CHECK(terms.min_bandwidth == 0.25 && !terms.was_refused);
    terms = terms_of(&config, "b", "stock");
    CHECK(!strcmp(terms.policy->name, "dedicated") && terms.min_bandwidth == 0.7 && terms.was_refused);
    terms = terms_of(&config, "z", "share-links");
    CHECK(!terms.shares_links && terms.was_refused);
    terms = terms_of(&config, "a", "min-bandwidth=0.25");
    CHECK(terms.min_bandwidth == 1 && terms.was_refused);
    config_free(&config);
}

/* A job that asks for isolation itself waits for the engine. Where a rule promises isolation its line says so, or else the file; if
 * neither does, stock Slurm chooses. A line that is wrong changes nothing about the others. */
static void test_without_engine(void)
{
    Config config;
    const char *text = "Engine=/e JobsMay=isolated,stock,hop-bytes\nPartition=a Policy=isolated\n"
                       "Partition=b Policy=dedicated WithoutEngine=wait\nPartition=c Policy=hop-bytes\n";
    CHECK(!read_config(&config, text));
    CHECK(!terms_of(&config, "a", "share-links").waits && terms_of(&config, "b", "share-links").waits);
    CHECK(!terms_of(&config, "c", "share-links").waits && !terms_of(&config, "z", "share-links").waits);
    CHECK(terms_of(&config, "a", "isolated").waits && terms_of(&config, "z", "isolated").waits);
    CHECK(!terms_of(&config, "b", "stock").waits && !terms_of(&config, "b", "hop-bytes").waits);
    CHECK(terms_of(&config, "b", "jigsaw").waits && terms_of(&config, "b", "jigsaw").was_refused);
    CHECK(!terms_of(&config, "z", "jigsaw").waits);
    config_free(&config);
    text = "Colour=red\nWithoutEngine=wait\nPartition=a Policy=isolated\nPartition=b Policy=jigsaw WithoutEngine=stock\n"
           "Partition=c Policy=hop-bytes\nPartition=d Policy=best\n";
    char *why = read_config(&config, text);
    CHECK(why && strstr(why, "line 1: there is no setting 'Colour'") && config.rule_count == 3);
    free(why);
    CHECK(terms_of(&config, "a", "share-links").waits && !terms_of(&config, "b", "share-links").waits);
    CHECK(!terms_of(&config, "c", "share-links").waits && !terms_of(&config, "d", "share-links").waits);
    CHECK(terms_of(&config, "d", "dedicated").waits); /* What JobsMay allows is not known. */
    config_free(&config);
}

/* The last refusals are kept, the newest of each job; a job is written down again only after some seconds. */
static void test_waiting(void)
{
    Waiting waiting;
    CHECK(waiting_open(&waiting, 130));
    uint32_t nodes[] = {0, 63, 64, 129};
    for (uint32_t job = 1; job <= WAITING_MOST + 3; job++) {
        CHECK(waiting_is_due(&waiting, job, 100));
        waiting_refused(&waiting, (Refused){.job = job, .refused = 100, .kind = "not-now", .wanted = job}, nodes, 4);
        CHECK(!waiting_is_due(&waiting, job, 104) && waiting_is_due(&waiting, job, 105));
    }
    CHECK(waiting_is_due(&waiting, 1, 100) && waiting_is_due(&waiting, 3, 100) && !waiting_is_due(&waiting, 4, 100));
    waiting_refused(&waiting, (Refused){.job = 9, .refused = 107, .kind = "never"}, nodes + 1, 1);
    size_t found = 0;
    for (size_t index = 0; index < WAITING_MOST; index++)
        if (waiting.list[index].job == 9) {
            const uint64_t *bits = &waiting.candidates[index * waiting.words];
            CHECK(bits[0] == UINT64_C(1) << 63 && bits[1] == 0 && bits[2] == 0 && waiting.list[index].refused == 107);
            found++;
        }
    CHECK(found == 1);
    waiting_forget(&waiting, 9);
    CHECK(waiting_is_due(&waiting, 9, 107));
    waiting_close(&waiting);
}

/* Writes records for test_plugin.py, which reads them as all other programs do. */
static void write_records(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/records", folder);
    FILE *to = fopen(path, "w");
    CHECK(to != NULL);
    record_running(to, &(Published_Job){7, "dedicated", 4, "isolated", 0.5});
    record_running(to, &(Published_Job){UINT32_MAX, "stock", RULE_STOCK, "none", 1});
    uint64_t bits[] = {UINT64_C(1) << 63 | 0xd, 1};
    Refused waits = {.job = 9, .policy = "isolated", .rule = RULE_OPTION, .min_bandwidth = 1, .refused = 1700000000,
                     .kind = "would-share-links", .wanted = 5};
    record_refused(to, &waits, bits, 2);
    waits.rule = RULE_OTHERWISE;
    waits.kind = "no-engine";
    record_refused(to, &waits, bits, 0);
    CHECK(!fclose(to));
}

static bool is_odd(uint64_t job, void *with)
{
    (void)with;
    return job % 2;
}

static void put_file(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, length, file) == length && !fclose(file));
}

/* Writes a file of owned links with the sum that it has, and reads it. The caller frees what the reader says. */
static char *links_read(const char *path, const char *body, Owners *owners)
{
    char *text = NULL;
    int length = asprintf(&text, "topolane-links 1 0000000000000007 %s", body);
    CHECK(length > 0);
    char *whole = NULL;
    length = asprintf(&whole, "%ssum %016lx\n", text, (unsigned long)sum_of(text, (size_t)length));
    CHECK(length > 0);
    put_file(path, whole, (size_t)length);
    free(whole);
    free(text);
    *owners = (Owners){.machine = 7};
    return owners_read(owners, path);
}

static bool links_refused(const char *path, const char *body, const char *sentence)
{
    Owners owners;
    char *why = links_read(path, body, &owners);
    bool is_as_said = why && strstr(why, sentence) && owners.count == 0 && !owners.list;
    if (!is_as_said)
        fprintf(stderr, "%s: %s\n", body, why ? why : "taken");
    free(why);
    owners_free(&owners);
    return is_as_said;
}

/* A file with a right sum is used only if it is what owners_write writes: slurmctld waits for the reader, which sorts nothing, and
 * asks for no more memory than the file has room to fill. */
static void test_foreign_links(const char *path)
{
    Owners owners;
    CHECK(!links_read(path, "2\n3 1 2 0 1 1 24\n5 0.5 1 7 2 30 25\n", &owners) && owners.count == 2);
    CHECK(owners_find(&owners, 3)->in_file && owners_find(&owners, 5)->links[0] == 30);
    owners_free(&owners);
    CHECK(!links_read(path, "0\n", &owners) && owners.count == 0);
    owners_free(&owners);
    CHECK(links_refused(path, "2\n5 1 1 0 1 24\n3 1 1 1 1 25\n", "line 3: job 3 comes after job 5"));
    CHECK(links_refused(path, "2\n5 1 1 0 1 24\n5 1 1 1 1 25\n", "line 3: job 5 comes after job 5"));
    CHECK(links_refused(path, "1\n5 1 2 1 0 1 24\n", "line 2 is not a job, its share, its nodes and its links"));
    CHECK(links_refused(path, "1\n5 1 2 1 1 1 24\n", "line 2"));
    CHECK(links_refused(path, "1\n5 1 1 0 1 -24\n", "line 2"));
    CHECK(links_refused(path, "1\n5 1 1 0 1 4294967296\n", "line 2"));
    CHECK(links_refused(path, "1\n18446744073709551616 1 1 0 1 2\n", "line 2"));
    CHECK(links_refused(path, "1\n5 inf 1 0 1 24\n", "line 2") && links_refused(path, "1\n5 2 1 0 1 24\n", "line 2"));
    CHECK(links_refused(path, "1\n5  1 1 0 1 24\n", "line 2") && links_refused(path, "1\n5 1 1 0\n1 24\n", "line 2"));
    CHECK(links_refused(path, "1\n5 1 4294967295 0 1 24\n", "line 2"));
    CHECK(links_refused(path, "1\n5 1 1 0 1 24\n6 1 1 0 1 25\n", "it has more lines than its first line says"));
    CHECK(links_refused(path, "2\n5 1 2 0 1 2 24 25\n", "line 3 is not a job"));
    CHECK(links_refused(path, "18446744073709551615\n5 1 1 0 1 24\n", "its first line does not fit the rest"));
    unlink(path);
}

static void test_links(const char *path)
{
    Owners owners = {.machine = 7}, other = {.machine = 7};
    CHECK(!owners_read(&other, path) && other.count == 0);
    for (uint32_t job = 40; job > 0; job--) {
        uint32_t nodes[] = {job, job + 1}, links[] = {2 * job};
        Owned owned = {.job = job, .nodes = nodes, .node_count = 2, .links = links, .link_count = job % 2, .bandwidth_share = 0.5};
        CHECK(owners_set(&owners, &owned) && !owners_find(&owners, job)->in_file);
        CHECK(owners_set(&owners, &owned) && owners.count == 41 - job);
        links[0]++;
        CHECK(owners_set(&owners, &owned) && owners.count == 41 - job);
    }
    char *why = owners_write(&owners, path);
    CHECK(!why && !owners_read(&other, path) && other.count == 40);
    for (uint64_t job = 1; job <= 40; job++) {
        const Owned *one = owners_find(&owners, job), *same = owners_find(&other, job);
        CHECK(one && same && one->link_count == same->link_count && same->nodes[1] == job + 1);
        CHECK(one->in_file && same->in_file);
        CHECK(!one->link_count || (same->links[0] == 2 * job + 1 && same->bandwidth_share == 0.5));
    }
    Owned changed = *owners_find(&other, 5);
    CHECK(owners_set(&other, &changed)->in_file); /* nothing has changed */
    changed.bandwidth_share = 0.25;
    CHECK(!owners_set(&other, &changed)->in_file);
    owners_keep(&other, is_odd, NULL);
    owners_remove(&other, 3);
    owners_remove(&other, 2);
    CHECK(other.count == 19 && !owners_find(&other, 3) && owners_find(&other, 5));
    owners_free(&other);
    /* Of another machine, cut short anywhere, changed anywhere: as if there were none. */
    other.machine = 8;
    why = owners_read(&other, path);
    CHECK(why && strstr(why, "another machine") && other.count == 0);
    free(why);
    other.machine = 7;
    char *text;
    size_t length;
    CHECK(!whole_file(path, MOST_LINKS, &text, &length));
    for (size_t at = 0; at < length; at += 7)
        for (int cut = 0; cut < 2; cut++) {
            char *damaged = malloc(length);
            memcpy(damaged, text, length);
            damaged[at] ^= 1;
            FILE *file = fopen(path, "w");
            CHECK(file && fwrite(damaged, 1, cut ? at : length, file) == (cut ? at : length) && !fclose(file));
            free(damaged);
            why = owners_read(&other, path);
            CHECK(why && other.count == 0);
            free(why);
        }
    free(text);
    why = owners_write(&owners, "/nowhere/at/all");
    CHECK(why && strstr(why, "/nowhere/at/all") && !owners_find(&owners, 5)->in_file);
    free(why);
    owners_free(&owners);
    why = whole_file("/tmp", MOST_LINKS, &text, &length);
    CHECK(why && !text);
    free(why);
    CHECK(crc_of("123456789", 9) == 0xcbf43926); /* The value that every description of this checksum gives. */
    /* A pipe without a writer is refused at once. */
    CHECK(!remove(path) && !mkfifo(path, 0600));
    why = whole_file(path, MOST_LINKS, &text, &length);
    CHECK(why && strstr(why, "not a file of a size that can be read") && !text);
    free(why);
    CHECK(!remove(path));
}


/* Writes a file of links out of service: its first line and its links, with the sum. */
static void put_links_out(const char *path, const char *body)
{
    char text[256];
    int length = snprintf(text, sizeof text, "%ssum %016lx\n", body, (unsigned long)sum_of(body, strlen(body)));
    put_file(path, text, (size_t)length);
}

static bool links_out_refused(const char *path, const char *body, const char *sentence)
{
    Links_Out out;
    put_links_out(path, body);
    char *why = links_out_read(&out, path, 7);
    bool is_as_said = why && strstr(why, sentence) && !out.links && !out.failed && !out.reserved;
    free(why);
    return is_as_said;
}

/* The file of links out of service is used whole, of this machine, or not at all; one thread looks, another one takes. */
static void test_links_out(const char *directory)
{
    char path[512];
    snprintf(path, sizeof path, "%s/topolane_links_out", directory);
    unlink(path);
    Links_Out out, other;
    CHECK(!links_out_read(&out, path, 7) && !links_out_count(&out));
    const char *body = "topolane-links-out 1 0000000000000007 2 3\n4 9\n8 9 10\n";
    put_links_out(path, body);
    CHECK(!links_out_read(&out, path, 7) && out.reserved == 2 && out.failed == 3 && out.links[1] == 9 && out.links[4] == 10);
    CHECK(links_out_count(&out) == 4 && links_out_same(&out, &out));
    char *why = links_out_read(&other, path, 8);
    CHECK(why && strstr(why, "another machine") && !other.links && !links_out_same(&out, &other));
    free(why);
    links_out_free(&out);
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 2 3\n4 9\n8 9\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 2 1\n4 9\n8 9\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 0 1\n\n-8\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 0 1\n\n4294967296\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 2 1\n9 4\n8\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 0 2\n\n8 8\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 1 1\n4 8\n\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 1 0000000000000007 99999999999 1\n\n8\n", "cannot be read"));
    CHECK(links_out_refused(path, "topolane-links-out 2 0000000000000007 0 0\n\n\n", "not whole"));
    put_links_out(path, body);
    char *text;
    size_t length;
    CHECK(!whole_file(path, MOST_LINKS, &text, &length));
    for (size_t at = 0; at < length - 1; at++)
        for (int cut = 0; cut < 2; cut++) {
            char *damaged = malloc(length);
            memcpy(damaged, text, length);
            damaged[at] ^= 1;
            put_file(path, damaged, cut ? at : length);
            free(damaged);
            why = links_out_read(&out, path, 7);
            CHECK(why && !out.links);
            free(why);
        }
    links_out_open(directory, 7);
    CHECK(!links_out_take(&out, &why));
    put_links_out(path, body);
    links_out_look();
    CHECK(links_out_take(&out, &why) && !why && out.failed == 3 && !links_out_take(&other, &why));
    links_out_look();
    CHECK(!links_out_take(&other, &why));
    put_file(path, text, length / 2);
    links_out_look();
    CHECK(links_out_take(&other, &why) && why && !other.links);
    free(why);
    unlink(path);
    links_out_look();
    CHECK(links_out_take(&other, &why) && !why && !links_out_count(&other));
    put_links_out(path, body);
    links_out_look();
    links_out_close();
    links_out_look();
    CHECK(!links_out_take(&other, &why));
    free(text);
    links_out_free(&out);
}

static int maps;

static void free_map(void *map)
{
    maps--;
    free(map);
}

static Holder random_holder(uint64_t job)
{
    Holder holder = {.job = job, .bandwidth_share = 1, .map = malloc(8), .link_use = (uint32_t)(rand() % 3)};
    maps++;
    uint32_t first = (uint32_t)(rand() % 28);
    holder.node_count = (size_t)(rand() % 5); /* Sometimes none that the machine has. */
    holder.nodes = malloc((holder.node_count + 1) * sizeof *holder.nodes);
    for (uint32_t node = 0; node < holder.node_count; node++)
        holder.nodes[node] = first + node;
    if (rand() % 4 == 0) { /* Often a link that another job has, or that there is not. */
        holder.links = malloc(sizeof *holder.links);
        holder.links[0] = (uint32_t)(rand() % 60);
        holder.link_count = 1;
    }
    return holder;
}

/* Whether two states of the engine place requests alike. */
static void same_answers(const Engine *engine, const topolane_policy *policy, topolane_state *state, topolane_state *same)
{
    for (uint32_t slots = 1; slots < 20; slots += 3) {
        topolane_request request;
        engine->request_init(&request, sizeof request);
        request.id = 1000;
        request.slots = slots;
        topolane_decision *one = NULL, *other = NULL;
        char *error = NULL;
        topolane_status status = engine->state_place(state, policy, &request, &one, NULL, &error);
        CHECK(status == engine->state_place(same, policy, &request, &other, NULL, &error));
        topolane_numbers nodes = engine->decision_nodes(one), others = engine->decision_nodes(other);
        CHECK(nodes.count == others.count);
        CHECK(!nodes.count || !memcmp(nodes.first, others.first, nodes.count * sizeof *nodes.first));
        engine->decision_free(one);
        engine->decision_free(other);
    }
}

/* Another list of links that no new job may own: failed ones anywhere, and reserved ones. */
static Links_Out random_links_out(void)
{
    Links_Out out = {.reserved = (size_t)(rand() % 3), .failed = (size_t)(rand() % 6)};
    out.links = malloc(8 * sizeof *out.links);
    for (size_t index = 0; index < out.reserved + out.failed; index++)
        out.links[index] = (uint32_t)(rand() % 56); /* cables of nodes as well */
    return out;
}

static Links_Out copy_of(const Links_Out *out)
{
    Links_Out copy = *out;
    copy.links = memcpy(malloc(8 * sizeof *copy.links), out->links ? out->links : (uint32_t[8]){0}, 8 * sizeof *copy.links);
    return copy;
}

/* No decision of a state has a link that is out; in the state without jobs only reserved ones are. */
static void keeps_off(const Engine *engine, const topolane_policy *policy, topolane_state *state, const uint32_t *links, size_t count)
{
    for (uint32_t slots = 2; slots < 30; slots += 3) {
        topolane_request request;
        engine->request_init(&request, sizeof request);
        request.id = 1000;
        request.slots = slots;
        topolane_decision *decision = NULL;
        char *error = NULL;
        engine->state_place(state, policy, &request, &decision, NULL, &error);
        topolane_numbers given = engine->decision_links(decision);
        for (size_t index = 0; index < given.count; index++)
            for (size_t out = 0; out < count; out++)
                CHECK(given.first[index] != links[out]);
        engine->decision_free(decision);
    }
}

/* A job that owns a link keeps it when that fails. The empty state has the failed link, so that no job is refused for good. A link
 * that the machine does not have changes nothing. */
static void test_links_out_of_states(const Engine *engine, const topolane_machine *machine)
{
    Holders holders;
    topolane_policy *policy;
    topolane_state *state;
    char *error = NULL;
    CHECK(engine->policy_new("dedicated", 0, &policy, &error) == TOPOLANE_STATUS_OK);
    CHECK(!holders_open(&holders, engine, machine, free_map));
    topolane_request request;
    engine->request_init(&request, sizeof request);
    request.id = 5;
    request.slots = 32;
    topolane_decision *decision = NULL;
    CHECK(engine->state_place(holders.empty, policy, &request, &decision, NULL, &error) == TOPOLANE_STATUS_OK);
    topolane_numbers links = engine->decision_links(decision);
    CHECK(links.count > 0);
    for (int is_reserved = 0; is_reserved < 2; is_reserved++) {
        Links_Out out = {.links = malloc(8 * sizeof *out.links), .reserved = is_reserved, .failed = !is_reserved};
        out.links[0] = links.first[0];
        CHECK(!holders_set_out(&holders, out));
        topolane_decision *none = NULL;
        CHECK(!holders_without(&holders, NULL, &state));
        CHECK(engine->state_place(state, policy, &request, &none, NULL, &error) == TOPOLANE_STATUS_REFUSED);
        topolane_status could = engine->state_place(holders.empty, policy, &request, &none, NULL, &error);
        CHECK(could == (is_reserved ? TOPOLANE_STATUS_REFUSED : TOPOLANE_STATUS_OK));
        engine->decision_free(none);
    }
    Links_Out wrong = {.links = malloc(8 * sizeof *wrong.links), .failed = 1};
    wrong.links[0] = 100000;
    char *why = holders_set_out(&holders, wrong);
    CHECK(why && strstr(why, "100000") && holders.out.reserved == 1 && holders.out.links[0] == links.first[0]);
    free(why);
    engine->decision_free(decision);
    engine->policy_free(policy);
    holders_close(&holders);
}

/* Random jobs come, go and are thought away; each state of the engine equals a new one with the same jobs. */
static void test_holders(const char *library)
{
    enum { JOBS = 400, HYPOTHESES = 20 };
    Engine engine;
    char *why = engine_load(&engine, library), *error = NULL;
    CHECK(!why);
    topolane_machine *machine;
    topolane_policy *policy, *dedicated;
    const char *text = "name = \"n\"\n[[site]]\nname = \"top\"\nchildren = [4, 4, 2]\nparents = [1, 2, 2]\nnodes = \"n[1-32]\"\n";
    CHECK(engine.machine_read("m.toml", text, strlen(text), &machine, &error) == TOPOLANE_STATUS_OK);
    CHECK(engine.policy_new("isolated", 0, &policy, &error) == TOPOLANE_STATUS_OK);
    CHECK(engine.policy_new("dedicated", 0, &dedicated, &error) == TOPOLANE_STATUS_OK);
    test_links_out_of_states(&engine, machine);
    Holders holders, fresh;
    CHECK(!holders_open(&holders, &engine, machine, free_map));
    static uint64_t gone[HYPOTHESES][JOBS / 64 + 8];
    srand(1);
    for (int step = 0; step < 4000; step++) {
        /* First many jobs, so that the arrays grow, then few. */
        uint64_t job = 1 + (uint64_t)(rand() % (step < 1000 ? JOBS : 12));
        uint32_t slot = holders_find(&holders, job);
        if (slot != NO_SLOT && (rand() % 2 || step > 1000)) {
            holders_remove(&holders, slot);
            CHECK(holders_find(&holders, job) == NO_SLOT && !slot_test(holders.there, slot));
        } else {
            slot = holders_put(&holders, random_holder(job));
            CHECK(slot != NO_SLOT && holders_find(&holders, job) == slot && slot_test(holders.there, slot));
        }
        if (rand() % 25 == 0)
            CHECK(!holders_set_out(&holders, random_links_out()));
        /* Several questions follow each other with the same jobs: known hypotheses, larger ones, and more than are kept. */
        topolane_state *state, *same;
        uint64_t *some = NULL;
        bool any = false;
        for (int asks = rand() % (step % 100 ? 6 : 300); asks >= 0; asks--) {
            some = gone[rand() % HYPOTHESES];
            uint64_t kept = rand() % 2 ? ~UINT64_C(0) : 0;
            if (rand() % 3 == 0)
                for (size_t word = 0; word < holders.words; word++)
                    some[word] = (some[word] & kept) | ((uint64_t)rand() << 32 ^ (uint64_t)rand() << 7);
            any = rand() % 3;
            CHECK(!holders_without(&holders, any ? some : NULL, &state));
        }
        if (step % 10)
            continue;
        CHECK(!holders_open(&fresh, &engine, machine, free));
        CHECK(!holders_set_out(&fresh, copy_of(&holders.out)));
        for (slot = 0; (slot = slot_next(holders.there, holders.words, slot)) != NO_SLOT; slot++) {
            if (any && slot_test(some, slot))
                continue;
            Holder copy = holders.list[slot];
            copy.map = NULL;
            copy.nodes = memcpy(malloc((copy.node_count + 1) * sizeof *copy.nodes), copy.nodes, copy.node_count * sizeof *copy.nodes);
            copy.links = NULL;
            copy.link_count = 0;
            CHECK(holders_put(&fresh, copy) != NO_SLOT);
        }
        CHECK(!holders_without(&fresh, NULL, &same));
        CHECK(holders_isolated(&fresh, NULL) == holders_isolated(&holders, any ? some : NULL));
        same_answers(&engine, policy, state, same);
        const Links_Out *out = &holders.out;
        keeps_off(&engine, dedicated, state, out->links, out->reserved + out->failed);
        keeps_off(&engine, dedicated, holders.empty, out->links, out->reserved);
        holders_close(&fresh);
    }
    holders_close(&holders);
    CHECK(maps == 0);
    CHECK(!holders_open(&holders, &engine, machine, free_map));
    topolane_state *state;
    CHECK(!holders_renew(&holders) && holders.empty && !holders_without(&holders, NULL, &state) && state);
    holders_close(&holders);
    engine.policy_free(policy);
    engine.policy_free(dedicated);
    engine.machine_free(machine);
    why = engine_load(&engine, "/nowhere.so");
    CHECK(why && strstr(why, "cannot be loaded"));
    free(why);
}

int main(int count, char **words)
{
    if (count == 1) {
        print_config();
        return 0;
    }
    CHECK(count == 4);
    test_config();
    test_options();
    test_without_engine();
    test_waiting();
    write_records(words[3]);
    test_foreign_links(words[2]);
    test_links(words[2]);
    test_links_out(words[3]);
    test_holders(words[1]);
    puts("ok");
    return 0;
}
