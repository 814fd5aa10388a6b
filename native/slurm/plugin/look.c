#include "look.h"

#include "driver.h"
#include "layout.h"
#include "running.h"
#include "src/slurmctld/locks.h"

/* Weak, because slurmd and the commands load the plugin too. No header of Slurm declares the last one: it is 0 while another
 * slurmctld is in control. */
#pragma weak lock_slurmctld
#pragma weak unlock_slurmctld
#pragma weak slurmctld_config
#pragma weak control_time
extern time_t control_time;

/* Slurm's jobs are whole only while it is in control: when it ends or hands over, it frees what they point to. */
static bool has_control(void)
{
    return driver.is_active && layout_boot_time() && !slurmctld_config.shutdown_time && control_time;
}

static bool is_due(void)
{
    return lock_slurmctld && unlock_slurmctld && &control_time && has_control() && running_is_old();
}

/* What readers of jobs lock in slurmctld. */
static const slurmctld_lock_t JOBS_TO_READ = {.conf = READ_LOCK, .job = READ_LOCK, .node = READ_LOCK, .part = READ_LOCK};

static void begin(void)
{
    lock_slurmctld(JOBS_TO_READ);
}

static void look(void)
{
    if (!job_list || !has_control() || layout_compared() != LAYOUT_FITS || !driver_map_nodes())
        return;
    driver_read_owners();
    running_look();
}

static void end(void)
{
    unlock_slurmctld(JOBS_TO_READ);
}

const Looks look_looks = {is_due, begin, look, end};
